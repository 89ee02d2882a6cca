import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import type { ExecResult } from '../../../../infra/sandbox/sandbox.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

const ended: ExecResult = {
  exitCode: 0,
  timedOut: false,
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  truncated: false,
};
const options = { workdir: '/workspace', baseCommit: '0'.repeat(40) };
const signal = () => AbortSignal.timeout(10_000);

it('marks a diff as too large if git takes too long for it twice, or prints too much', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  context.after(() => rm(root, { recursive: true }));
  for (const how of [{ timedOut: true, exitCode: 137 }, { truncated: true }]) {
    const sandbox = { exec: async () => ({ ...ended, ...how }) };
    const diff = await captureDiff(sandbox, createFileStore(root), { ...options, stalledBefore: true }, signal());
    assert.deepEqual([diff.tooLarge, diff.files], [true, 0]);
  }
});

it('fails retryably when the first capture takes too long, since the host may have stalled', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  context.after(() => rm(root, { recursive: true }));
  const sandbox = { exec: async () => ({ ...ended, timedOut: true, exitCode: 137 }) };
  await assert.rejects(captureDiff(sandbox, createFileStore(root), { ...options, stalledBefore: false }, signal()), {
    type: 'SandboxUnavailable',
  });
});
