import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NotStarted } from '../../../../infra/sandbox/failure.ts';
import type { StoredSpec } from '../../../../infra/sandbox/labels.ts';
import { readInside } from '../../../../infra/sandbox/shell/files.ts';
import { createProcesses } from '../../../../infra/sandbox/shell/processes.ts';
import { createReports } from '../../../../infra/sandbox/shell/reports.ts';
import { countOomKills } from '../../../../infra/sandbox/shell/scripts.ts';
import type { Script, Shell } from '../../../../infra/sandbox/shell/shell.ts';
import { untilStarted } from '../../../../infra/sandbox/shell/until-started.ts';

const signal = new AbortController().signal;

interface Ends {
  /** The exit codes of the scripts that read, in order. */
  readonly exitCodes: readonly number[];
  /** The number of processes that the kernel has ended for memory. */
  readonly oomKills?: number;
  readonly root?: true;
}

/** Reads a file and a log in a sandbox whose scripts end as a test says. */
function readIn({ exitCodes, oomKills = 0, root }: Ends) {
  const left = [...exitCodes];
  const shell = {
    name: 'one',
    quietTasks: null,
    uidOf: () => (root ? 0 : 1000),
    run: async ({ text }: Script) => {
      const result = { stdout: Buffer.from(`${oomKills}\n`), stderr: Buffer.alloc(0), truncated: false };
      return { ...result, exitCode: text === countOomKills ? 0 : (left.shift() ?? 0) };
    },
  } as unknown as Shell;
  const spec = { pids: 10, diskMb: 10, workdir: '/work' } as StoredSpec;
  return {
    file: () => readInside(shell, '/logs/verifier/reward.txt', 100, signal),
    log: () =>
      createProcesses(shell, spec, createReports().of('one')).readLog('tests', { fromByte: 0, maxBytes: 9 }, signal),
  };
}

for (const what of ['file', 'log'] as const) {
  describe(`a ${what} of a sandbox whose reader`, () => {
    it('was killed is unread, and not missing', async () => {
      await assert.rejects(readIn({ exitCodes: [137] })[what](), { type: 'SandboxUnavailable' });
    });

    it('was killed after the memory was full is out of reach because of what ran there', async () => {
      const ends = { exitCodes: [137], oomKills: 2 };
      await assert.rejects(readIn(ends)[what](), { type: 'SandboxLost', loss: 'out-of-memory' });
    });

    it('may have been killed by an agent that is root', async () => {
      const ends = { exitCodes: [137], root: true } as const;
      await assert.rejects(readIn(ends)[what](), { type: 'SandboxLost', loss: 'ended-inside' });
    });

    it('lacks a program is unread', async () => {
      await assert.rejects(readIn({ exitCodes: [127] })[what](), { type: 'Internal' });
    });
  });
}

it('a file that only the agent may read is missing if the agent kills its reader', async () => {
  await assert.rejects(readIn({ exitCodes: [94, 137] }).file(), { reason: 'missing' });
});

describe('a command', () => {
  const busy = new NotStarted('SandboxUnavailable', 'the machine is busy');
  const full = new NotStarted('SandboxLost', 'the sandbox is full', { loss: 'out-of-memory' });
  const startAfter = (...failures: readonly Error[]) => {
    const left = [...failures];
    return () => untilStarted(async () => Promise.reject(left.shift() ?? assert.fail('it was tried once too often')));
  };

  it('that does not start fails for its own sandbox if that was found full once', async () => {
    await assert.rejects(startAfter(busy, busy, full, busy, busy), full);
  });

  it('that fails in another way is not tried again', async () => {
    const other = new Error('another failure');
    await assert.rejects(startAfter(busy, other), other);
  });
});
