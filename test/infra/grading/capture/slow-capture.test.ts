import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import { SandboxFailure } from '../../../../infra/sandbox/failure.ts';
import type { ExecRequest, ExecResult } from '../../../../infra/sandbox/sandbox.ts';
import { itemsATurn } from '../../../../infra/sandbox/turns.ts';
import { countTurns } from '../../../helpers/event-loop.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

const ended: ExecResult = {
  exitCode: 0,
  timedOut: false,
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  truncated: false,
};
const options = { workdir: '/workspace', baseCommit: '0'.repeat(40) };
const sandboxWhere = (result: ExecResult, usedMb = 0) => ({
  name: 'agents',
  exec: async () => result,
  diskUsage: async () => ({ usedMb, limitMb: 100 }),
});
const signal = () => AbortSignal.timeout(10_000);

it('marks a diff as too large if git takes too long for it twice, or prints too much', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  context.after(() => rm(root, { recursive: true }));
  for (const how of [{ timedOut: true, exitCode: 137 }, { truncated: true }]) {
    const sandbox = sandboxWhere({ ...ended, ...how });
    const diff = await captureDiff(sandbox, createFileStore(root), { ...options, failedBefore: true }, signal());
    assert.deepEqual([diff.tooLarge, diff.files], [true, 0]);
  }
});

it('fails retryably when the first capture takes too long, since the host may have stalled', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  context.after(() => rm(root, { recursive: true }));
  const sandbox = sandboxWhere({ ...ended, timedOut: true, exitCode: 137 });
  await assert.rejects(captureDiff(sandbox, createFileStore(root), { ...options, failedBefore: false }, signal()), {
    type: 'SandboxUnavailable',
  });
});

it('reads at most 500,000 names, a few at a time, and counts a diff as too large beyond that', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  context.after(() => rm(root, { recursive: true }));
  const capture = (names: Iterable<string>) => {
    const stdout = Buffer.from(`a\0/\0${[...names].join('\0')}\0/\0`);
    const sandbox = sandboxWhere({ ...ended, exitCode: 79, stdout });
    return countTurns(() => captureDiff(sandbox, createFileStore(root), { ...options, failedBefore: true }, signal()));
  };
  const many = 100_000;
  const { result, turns } = await capture(Array.from({ length: many }, (_, index) => `new/${index}`));
  assert.deepEqual([result.tooLarge, result.flags?.map(({ trick }) => trick)], [true, ['bulk']]);
  assert.ok(turns > (3 * many) / itemsATurn, `${turns} turns`);
  // Names of the base that are listed twice count as no new files, however many they are.
  const beyond = await capture(Array.from({ length: 500_001 }, () => 'a'));
  assert.deepEqual([beyond.result.tooLarge, beyond.result.flags?.map(({ trick }) => trick)], [true, ['bulk']]);
});

describe('a capture that git ends for an unknown reason', () => {
  const broken = { ...ended, exitCode: 3, stderr: Buffer.from('fatal: odd tree\n') };
  const full = { ...ended, exitCode: 128, stderr: Buffer.from('fatal: write error: No space left on device\n') };
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  });
  after(() => rm(root, { recursive: true }));
  const captured = (result: ExecResult, failedBefore: boolean, usedMb = 0) =>
    captureDiff(sandboxWhere(result, usedMb), createFileStore(root), { ...options, failedBefore }, signal());

  it('is tried once more, and is an empty diff with a flag then, so that no agent escapes its reward by it', async () => {
    await assert.rejects(captured(broken, false), { type: 'SandboxUnavailable' });
    const { files, unread, flags } = await captured(broken, true);
    assert.deepEqual([files, unread, flags?.map(({ trick }) => trick)], [0, true, ['unreadable']]);
  });

  it('is the fault of the host if its disk is full, and of an agent that has filled its own', async () => {
    await assert.rejects(captured(full, true, 50), { type: 'DiskFull' });
    assert.equal((await captured(full, true, 101)).unread, true);
  });

  it('is the fault of the host if a daemon says so', async () => {
    const fails = (error: Error) => ({ ...sandboxWhere(ended), exec: () => Promise.reject(error) });
    const answer = Object.assign(new Error('server error'), { statusCode: 500 });
    const lost = new SandboxFailure('SandboxLost', 'gone', { loss: 'removed' });
    const absent = new SandboxFailure('SandboxUnavailable', 'no answer');
    for (const error of [answer, lost, absent, new SandboxFailure('Internal', 'refused', { cause: answer })]) {
      const capture = captureDiff(fails(error), createFileStore(root), { ...options, failedBefore: true }, signal());
      await assert.rejects(capture, error);
    }
    const { unread } = await captureDiff(
      fails(new RangeError('Invalid time value')),
      createFileStore(root),
      { ...options, failedBefore: true },
      signal(),
    );
    assert.equal(unread, true);
  });
});

it('takes a bounded number of steps for any number of files that no account can read, and counts the rest as unread', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'temper-diff-'));
  context.after(() => rm(root, { recursive: true }));
  const names = Array.from({ length: 15_000 }, (_, index) => `${index}`);
  const listed = Buffer.from(`a\0/\0${['a', ...names].join('\0')}\0/\0`);
  let steps = 0;
  const sandbox = {
    ...sandboxWhere(ended),
    exec: async ({ argv: [, , script = ''] }: Pick<ExecRequest, 'argv'>): Promise<ExecResult> => {
      steps += 1;
      if (script.endsWith('exit 79\n')) return { ...ended, exitCode: 79, stdout: listed };
      if (script.endsWith('take')) return { ...ended, exitCode: 128 };
      return script.endsWith('\ndifference\n') ? { ...ended, exitCode: 77 } : ended;
    },
  };
  const diff = await captureDiff(sandbox, createFileStore(root), { ...options, failedBefore: false }, signal());
  assert.deepEqual([diff.tooLarge, diff.unread, diff.dropped], [false, true, 15_001]);
  assert.deepEqual(
    diff.flags?.map(({ trick }) => trick),
    ['unreadable'],
  );
  assert.ok(steps < 600, `expected fewer than 600 steps, got ${steps}`);
});
