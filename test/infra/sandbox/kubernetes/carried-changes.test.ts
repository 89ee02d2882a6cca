import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { largestFrame } from '../../../../infra/sandbox/carry/frames.ts';
import { carriedLimits } from '../../../../infra/sandbox/changes.ts';
import { createCarriedChanges } from '../../../../infra/sandbox/kubernetes/carried-changes.ts';
import type { PodShell } from '../../../../infra/sandbox/kubernetes/shell.ts';
import { countOomKills } from '../../../../infra/sandbox/shell/scripts.ts';
import { usingWhatAgentLeft } from '../../../../infra/sandbox/what-agent-left.ts';

const never = new AbortController().signal;

/** A shell whose program that reads files sends nothing but `sent`; `oomKills` are the kernel's counts, one for each question; `broken` is the error of its connection. */
function shellOf(oomKills: number[], broken?: Error, sent: readonly Buffer[] = []): PodShell {
  return {
    name: 'web-3',
    quietTasks: null,
    uidOf: () => 120_001,
    run: async ({ text }) => {
      const stdout = Buffer.from(text === countOomKills ? `${oomKills.shift()}\n` : '');
      return { exitCode: 0, stdout, stderr: Buffer.alloc(0), truncated: false };
    },
    follow: async () => 0,
    start: async () => ({ detached: Promise.resolve(0), release: () => undefined }),
    stream: async () => {
      const left = [...sent];
      return new Duplex({
        read() {
          if (broken === undefined) this.push(left.shift() ?? null);
          else this.destroy(broken);
        },
        write: (_chunk, _encoding, done) => done(),
      });
    },
    endAll: async () => undefined,
    writtenBytes: async () => 0,
    makeDirectory: async () => undefined,
    runAsOwner: async () => 0,
    hold: async () => undefined,
  };
}

/** Returns a frame of a program that an agent that is root has replaced. */
function frameOf(value: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(value));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}

describe('the reading of what an agent has changed in a Pod', () => {
  it('counts as ended by the agent if the kernel ended the program that reads for memory, and else is retried', async () => {
    const full = { type: 'SandboxLost', loss: 'out-of-memory', message: /what its agent has left fills its memory/ };
    await assert.rejects(createCarriedChanges(shellOf([1, 2]), false).read([], never), full);
    const cut = { type: 'SandboxUnavailable', message: /could not be carried; temper tries again/ };
    await assert.rejects(createCarriedChanges(shellOf([1, 1], new Error('cut')), false).read([], never), cut);
  });

  it('counts as ended by the agent if the program ends although its connection holds, each time', async () => {
    const shell = shellOf([1, 1, 1, 1]);
    const sandbox = { name: 'web-3', diskUsage: async () => ({ usedMb: 0, limitMb: 1 }) };
    const read = (failedBefore: boolean) =>
      usingWhatAgentLeft({ sandbox, failedBefore }, () => createCarriedChanges(shell, false).read([], never), never);
    await assert.rejects(read(false), { type: 'SandboxUnavailable' });
    await assert.rejects(read(true), { type: 'SandboxLost', loss: 'ended-inside' });
  });

  it('parses no frame that is larger than any that its program sends', async () => {
    const added = ['x'.repeat(largestFrame)];
    const shell = shellOf([1], undefined, [frameOf({ listings: [], added })]);
    await assert.rejects(createCarriedChanges(shell, true).read([], never), {
      type: 'Internal',
      evidence: new RegExp(`expected a frame of at most ${largestFrame} bytes, got ${largestFrame + 28}`),
    });
  });

  it('reads no more names than are carried, piece by piece, and calls the rest too many', async () => {
    const piece = frameOf({ listings: [], added: Array.from({ length: 40_000 }, () => '') });
    const pieces = Array.from({ length: 2 + carriedLimits.files / 40_000 }, () => piece);
    const { tooMany, added } = await createCarriedChanges(shellOf([1], undefined, pieces), true).read([], never);
    assert.deepEqual([tooMany, added.length], [true, 0]);
  });
});
