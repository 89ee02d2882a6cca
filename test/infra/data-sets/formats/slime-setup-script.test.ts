import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { splitSetupScript } from '../../../../infra/data-sets/formats/slime/setup-script.ts';

describe('splitSetupScript', () => {
  it('gives the agent the commands up to the base commit, and only evaluations those that extract files of a later commit', () => {
    const base = 'git reset --hard abc\ngit clean -fd \ngit checkout abc ';
    for (const last of [
      "\ngit checkout def -- test/a.js 'test/b c.js'",
      ' && git checkout -f def test/a.js "test/b c.js"\n',
    ]) {
      const split = splitSetupScript(`${base}${last}`);
      assert.ok(!('rejected' in split));
      assert.deepEqual(split.setup, ['git reset --hard abc\ngit clean -fd\ngit checkout abc']);
      assert.deepEqual(split.hiddenTestFiles, ['test/a.js', 'test/b c.js']);
      assert.match(split.hiddenTests.join(), /git checkout -q 'def' -- 'test\/a\.js' 'test\/b c\.js' &&/);
    }
  });

  it('rejects commands whose effects are unknown', () => {
    const last = (line: string) => splitSetupScript(`git reset --hard abc\n${line}`);
    for (const line of [
      'git show def:a > a',
      'git cherry-pick def',
      'git restore -s def a',
      'bash bring.sh',
      'git checkout abc > $(git show def)',
    ])
      assert.deepEqual(last(line), { rejected: line });
  });
});
