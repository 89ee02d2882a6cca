import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { enterImage, startVariables } from '../../../../infra/sandbox/image-environment.ts';
import { imageVariables, keepOwnPrograms } from '../../../../infra/sandbox/shell/own-programs.ts';

const agent = 120_001;
const system = '/usr/sbin:/usr/bin:/sbin:/bin';

/** A directory whose parents no other account may write, with the programs at these paths. */
function rootWith(t: TestContext, programs: readonly string[]): string {
  const root = mkdtempSync(join(homedir(), '.temper-own-programs-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const path of ['keeper/none', ...programs]) {
    mkdirSync(dirname(join(root, path)), { recursive: true, mode: 0o755 });
    writeFileSync(join(root, path), '#!/bin/sh\n', { mode: 0o755 });
  }
  chmodSync(root, 0o755);
  return root;
}

/** Looks up, in an environment, where temper's own programs are. Returns the directories beside the system's. */
function lookUp(root: string, env: Readonly<Record<string, string>>): readonly string[] {
  const at = (text: string): string => text.replaceAll('/.temper/', `${root}/keeper/`);
  const script = `agent=${agent} places=${root}/work\n${at(keepOwnPrograms)}`;
  const { status, stderr } = spawnSync('/bin/sh', ['-c', script], { env, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const found = readFileSync(join(root, 'keeper/path'), 'utf8').trim();
  assert.ok(found.startsWith(`${system}:`) || found === system, found);
  return found
    .slice(system.length + 1)
    .split(':')
    .filter((one) => !one.startsWith('/usr/'));
}

describe("the directories in which temper's own programs are found", () => {
  it("are those of the image's PATH that the agent can't change, named by where they really are", (t) => {
    const root = rootWith(t, [
      'conda/bin/git',
      'store/hash/bin/tar',
      'work/.venv/bin/sh',
      'shared/bin/sh',
      'open/bin/sh',
    ]);
    symlinkSync('store/hash', join(root, 'profile'));
    symlinkSync('work/.venv', join(root, 'venv'));
    chmodSync(join(root, 'shared'), 0o777);
    chmodSync(join(root, 'open/bin'), 0o1777);
    const path = ['work/.venv/bin', 'venv/bin', 'shared/bin', 'open/bin', 'conda/bin', 'profile/bin', 'none/bin'];
    const found = lookUp(root, { PATH: ['', 'bin', ...path.map((one) => join(root, one)), '/usr/bin'].join(':') });
    assert.deepEqual(found, [join(root, 'conda/bin'), join(root, 'store/hash/bin')]);
  });

  it('hold no program of temper that is a link to where the agent may write, and none that others may write', (t) => {
    const root = rootWith(t, ['work/tool', 'links/bin/other', 'files/bin/git', 'good/bin/git']);
    symlinkSync('../../work/tool', join(root, 'links/bin/git'));
    symlinkSync('../../work/tool', join(root, 'good/bin/unused-by-temper'));
    chmodSync(join(root, 'files/bin/git'), 0o777);
    const path = ['links/bin', 'files/bin', 'good/bin'].map((one) => join(root, one)).join(':');
    assert.deepEqual(lookUp(root, { PATH: path }), [join(root, 'good/bin')]);
  });

  it("are kept beside the image's variables, which a command enters exactly as they are, with its own before them", (t) => {
    const root = rootWith(t, []);
    const image = { PATH: '/work/bin:/usr/bin:/bin', QUOTED: `it's "a"\n$HOME \\ \`b\``, EMPTY: '', KEPT: 'image' };
    lookUp(root, image);
    const given = { HOME: '/home/agent', KEPT: 'command', BASH_ENV: '/work/hook', TEMPER_TESTS: '/tests' };
    const fromImage = imageVariables.replace('/.temper/', `${root}/keeper/`);
    const variables = startVariables(given, { entersImage: true }, fromImage);
    assert.equal(variables.BASH_ENV, undefined);
    for (const shell of ['/bin/sh', '/bin/bash']) {
      const { stdout, stderr } = spawnSync(
        shell,
        ['-c', `PATH=/usr/bin:/bin\n${enterImage} 2>/dev/null\nexec env -0`],
        {
          env: variables,
          encoding: 'utf8',
        },
      );
      const entries = stdout
        .split('\0')
        .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]);
      const found = new Map(entries as [string, string][]);
      for (const [name, value] of Object.entries({ ...image, ...given })) assert.equal(found.get(name), value, stderr);
      const others = [...found.keys()].filter((name) => name.startsWith('TEMPER_'));
      assert.deepEqual(others, ['TEMPER_TESTS']);
    }
  });
});
