import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findFlags, findKept, keepFlags, keepPrograms } from '../../../../infra/grading/programs/kept-programs.ts';
import { FileRefused } from '../../../../infra/sandbox/failure.ts';
import type { PutFiles } from '../../../../infra/sandbox/sandbox.ts';
import { workspaceTask } from '../../../helpers/sandbox/workspaces.ts';

const never = new AbortController().signal;

/** A sandbox that only has files, and whose PATH leads to no directory of the agent's. */
function filesOnly() {
  const files = new Map<string, Buffer>();
  return {
    files,
    exec: async () => ({
      exitCode: 0,
      timedOut: false,
      stdout: Buffer.alloc(0),
      stderr: Buffer.alloc(0),
      truncated: false,
    }),
    async putFiles({ tree, at }: PutFiles): Promise<void> {
      for (const [path, { bytes }] of tree) files.set(`${at}/${path}`, Buffer.from(bytes));
    },
    async readFile(path: string): Promise<Buffer> {
      return files.get(path) ?? Promise.reject(new FileRefused('missing', path, `${path} is missing`));
    },
  };
}

describe('what is kept for tests in the sandbox of the agent', () => {
  it('is there without a directory of the agent in the PATH, too, so that its removal is no pretence of that', async () => {
    const sandbox = filesOnly();
    await keepPrograms(sandbox, { task: workspaceTask(new Map()), workdir: '/workspace' }, never);
    assert.deepEqual(await findKept(sandbox, never), { base: null, refusal: null });
    sandbox.files.clear();
    const { refusal } = await findKept(sandbox, never);
    assert.match(refusal ?? '', /was changed or removed: .* is missing/);
  });

  it('is refused if something else is in its place', async () => {
    const sandbox = filesOnly();
    await keepPrograms(sandbox, { task: workspaceTask(new Map()), workdir: '/workspace' }, never);
    for (const path of sandbox.files.keys()) sandbox.files.set(path, Buffer.from('no list'));
    assert.notEqual((await findKept(sandbox, never)).refusal, null);
  });

  it('has the flags of an earlier attempt, and one if they were changed', async () => {
    const sandbox = filesOnly();
    assert.deepEqual(await findFlags(sandbox, never), []);
    const flags = [{ trick: 'program-shadow', evidence: 'grep was added' }] as const;
    await keepFlags(sandbox, flags, never);
    assert.deepEqual(await findFlags(sandbox, never), flags);
    for (const changed of ['[{}]', '[', '{}']) {
      for (const path of sandbox.files.keys()) sandbox.files.set(path, Buffer.from(changed));
      assert.deepEqual(
        (await findFlags(sandbox, never)).map(({ trick }) => trick),
        ['unreadable'],
      );
    }
  });
});
