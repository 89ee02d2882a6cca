import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { createCarriedChanges } from '../../../../infra/sandbox/kubernetes/carried-changes.ts';
import type { PodShell } from '../../../../infra/sandbox/kubernetes/shell.ts';
import { countOomKills } from '../../../../infra/sandbox/shell/scripts.ts';
import { usingWhatAgentLeft } from '../../../../infra/sandbox/what-agent-left.ts';

const never = new AbortController().signal;

/** A shell whose program that reads files ends before it has sent any; `oomKills` are the kernel's counts, one for each question; `broken` is the error of its connection. */
function shellOf(oomKills: number[], broken?: Error): PodShell {
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
    stream: async () =>
      new Duplex({
        read() {
          if (broken === undefined) this.push(null);
          else this.destroy(broken);
        },
        write: (_chunk, _encoding, done) => done(),
      }),
    endAll: async () => undefined,
    writtenBytes: async () => 0,
    makeDirectory: async () => undefined,
    runAsOwner: async () => 0,
  };
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
});
