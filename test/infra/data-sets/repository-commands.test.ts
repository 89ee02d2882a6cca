import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { splitRepositoryCommands } from '../../../infra/data-sets/swe/repository-commands.ts';

describe('the commands that bring a repository to its tests', () => {
  it('are for the agent up to the base commit, and for evaluations alone where they bring files of a later one', () => {
    const base = 'git reset --hard abc\ngit clean -fd \ngit checkout abc ';
    for (const last of [
      "\ngit checkout def -- test/a.js 'test/b c.js'",
      ' && git checkout -f def test/a.js "test/b c.js"\n',
    ]) {
      const split = splitRepositoryCommands(`${base}${last}`);
      assert.ok(!('refused' in split));
      assert.deepEqual(split.setup, ['git reset --hard abc\ngit clean -fd\ngit checkout abc']);
      assert.deepEqual(split.files, ['test/a.js', 'test/b c.js']);
      assert.match(split.hiddenTests.join(), /git checkout -q 'def' -- 'test\/a\.js' 'test\/b c\.js' &&/);
    }
  });

  it('are refused where nobody knows what they bring', () => {
    const last = (line: string) => splitRepositoryCommands(`git reset --hard abc\n${line}`);
    for (const line of [
      'git show def:a > a',
      'git cherry-pick def',
      'git restore -s def a',
      'bash bring.sh',
      'git checkout abc > $(git show def)',
    ])
      assert.deepEqual(last(line), { refused: line });
  });
});
