import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { createCarriedChanges } from '../../../../infra/sandbox/kubernetes/carried-changes.ts';
import type { PodShell } from '../../../../infra/sandbox/kubernetes/shell.ts';
import { countOomKills } from '../../../../infra/sandbox/shell/scripts.ts';

const never = new AbortController().signal;

/** A shell whose program that reads files ends before it has sent any; `oomKills` are the kernel's counts, one for each question. */
function shellOf(oomKills: number[]): PodShell {
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
    stream: async () => Duplex.from((async function* () {})()),
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
    await assert.rejects(createCarriedChanges(shellOf([1, 1]), false).read([], never), cut);
  });
});
