import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BasePrograms, KeptFile, ProgramDirectory } from '../../../../infra/grading/programs/base-programs.ts';
import { decide } from '../../../../infra/grading/programs/decide.ts';

const file = (text: string): KeptFile => ({ mode: 0o755, target: null, bytes: Buffer.from(text) });
const directory = (
  path: string,
  names: readonly string[],
  given: Partial<ProgramDirectory> = {},
): ProgramDirectory => ({
  path,
  real: path,
  isOwn: true,
  isPackage: false,
  names,
  ...given,
});
const base: BasePrograms = {
  directories: [
    directory('/app/bin', ['tool', 'server', 'git']),
    directory('/home/agent/.local/bin', [], { real: null }),
    directory('/usr/bin', ['git', 'grep'], { isOwn: false }),
  ],
  beyond: [],
  tracked: new Set(['bin/tool', 'bin/git']),
  hasRepository: true,
  workdir: '/app',
  files: new Map(['tool', 'server', 'git'].map((name) => [`/app/bin/${name}`, file(`old ${name}`)])),
};
const changed = ['tool', 'server', 'git'].map((name) => [`/app/bin/${name}`, file(`new ${name}`)] as const);
const now = {
  directories: [
    directory('/app/bin', ['tool', 'server', 'git', 'grep', 'mine']),
    directory('/home/agent/.local/bin', ['git', 'own']),
  ],
  files: new Map(changed),
};
const none = (): boolean => false;

describe('programs where the PATH of the tests leads', () => {
  it('are put back if git does not track them, removed if they stand for a later one, and otherwise kept and named', () => {
    const { put, remove, evidence } = decide(base, now, none);
    assert.deepEqual([...put], [['/app/bin/server', file('old server')]]);
    assert.deepEqual(remove, ['/app/bin/grep', '/home/agent/.local/bin/git']);
    for (const path of ['/app/bin/tool', '/app/bin/git', '/app/bin/mine', '/home/agent/.local/bin/own']) {
      assert.ok(
        evidence.some((text) => text.startsWith(`${path} was `)),
        path,
      );
    }
  });

  it('are put back without a repository of the task if a later directory has them, or if they belong to a package', () => {
    const without = { ...base, hasRepository: false, tracked: new Set(['bin/tool', 'bin/git', 'bin/server']) };
    assert.deepEqual([...decide(without, now, none).put.keys()], ['/app/bin/git']);
    const [first, ...rest] = base.directories;
    const packaged = { ...without, directories: [{ ...(first ?? assert.fail()), isPackage: true }, ...rest] };
    assert.deepEqual([...decide(packaged, now, none).put.keys()].length, 3);
  });

  it("are the agent's where the task says so, and untouched if nothing has changed", () => {
    const { put, remove } = decide(base, now, (path) => path.startsWith('/app/bin/'));
    assert.deepEqual([[...put], remove], [[], ['/home/agent/.local/bin/git']]);
    const same = { directories: base.directories.filter(({ isOwn }) => isOwn), files: base.files };
    assert.deepEqual(decide(base, same, none), { put: new Map(), remove: [], evidence: [] });
  });
});
