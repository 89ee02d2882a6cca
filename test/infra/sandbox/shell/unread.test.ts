import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { NotStarted } from '../../../../infra/sandbox/failure.ts';
import type { StoredSpec } from '../../../../infra/sandbox/labels.ts';
import type { Account, PutFiles } from '../../../../infra/sandbox/sandbox.ts';
import type { Role } from '../../../../infra/sandbox/shell/accounts.ts';
import { putFiles, readInside } from '../../../../infra/sandbox/shell/files.ts';
import { createProcesses } from '../../../../infra/sandbox/shell/processes.ts';
import { createReports } from '../../../../infra/sandbox/shell/reports.ts';
import { countOomKills } from '../../../../infra/sandbox/shell/scripts.ts';
import type { Script, Shell } from '../../../../infra/sandbox/shell/shell.ts';
import { untilStarted } from '../../../../infra/sandbox/shell/until-started.ts';

const over = new AbortController();
const { signal } = over;
after(() => over.abort());

interface Ends {
  /** The exit codes of the scripts that read, in order. */
  readonly exitCodes: readonly number[];
  /** The number of processes that the kernel has ended for memory. */
  readonly oomKills?: number;
  readonly root?: true;
}

/** Every try of a script that is killed. */
const always = [137, 137, 137];
/** The tries of a test are seconds apart, so the tests wait at the same time. */
const together = { concurrency: true };

/** Works in a sandbox whose scripts end as a test says. */
function workIn({ exitCodes, oomKills = 0, root }: Ends) {
  const left = [...exitCodes];
  const uids: Readonly<Record<string, number>> = { agent: 1000, grader: 0, keeper: 64_001 };
  const shell = {
    name: 'one',
    quietTasks: null,
    uidOf: (role: Role) => (root && role !== 'keeper' ? 0 : uids[role]),
    run: async ({ text }: Script) => {
      const isCount = text === countOomKills;
      const stdout = Buffer.from(isCount ? `${oomKills}\n` : 'running\n');
      return { stdout, stderr: Buffer.alloc(0), truncated: false, exitCode: isCount ? 0 : (left.shift() ?? 0) };
    },
    follow: async (_script: unknown, onStdout: (chunk: Buffer) => void) => {
      onStdout(Buffer.from('claimed\n'));
      await started.promise;
      onStdout(Buffer.from('live\n'));
      return 0;
    },
    start: async () => {
      const code = left.shift();
      if (code === undefined) started.resolve(undefined);
      return { detached: code === undefined ? started.promise : Promise.resolve(code), release: () => undefined };
    },
  } as unknown as Shell;
  const started = Promise.withResolvers<undefined>();
  // The recorder of a command that was not started would wait for it, and keep this process for half a minute.
  signal.addEventListener('abort', () => started.resolve(undefined));
  const spec = { pids: 10, diskMb: 10, workdir: '/work' } as StoredSpec;
  const processes = createProcesses(shell, spec, createReports().of('one'));
  const files = (owner: Account): PutFiles => ({ tree: new Map(), at: '/tests', owner });
  return {
    file: () => readInside(shell, '/logs/verifier/reward.txt', 100, signal),
    log: () => processes.readLog('tests', { fromByte: 0, maxBytes: 9 }, signal),
    status: () => processes.status('tests', signal),
    put: (owner: Account = 'grader') => putFiles(shell, files(owner), signal),
    start: (account: Account = 'grader') => {
      const command = { key: 'tests', account, argv: ['true'], env: {}, files: [files(account)] } as const;
      return processes.start(command, async () => undefined, signal);
    },
  };
}

for (const what of ['file', 'log'] as const) {
  describe(`a ${what} of a sandbox whose reader`, together, () => {
    it('was killed is unread, and not missing', async () => {
      await assert.rejects(workIn({ exitCodes: always })[what](), { type: 'SandboxUnavailable' });
    });

    it('was killed after the memory was full is out of reach because of what ran there', async () => {
      const ends = { exitCodes: always, oomKills: 2 };
      await assert.rejects(workIn(ends)[what](), { type: 'SandboxLost', loss: 'out-of-memory' });
    });

    it('may have been killed each time by an agent that is root', async () => {
      const ends = { exitCodes: always, root: true } as const;
      await assert.rejects(workIn(ends)[what](), { type: 'SandboxLost', loss: 'ended-inside' });
    });

    it('lacks a program is unread', async () => {
      await assert.rejects(workIn({ exitCodes: [127] })[what](), { type: 'Internal' });
    });
  });
}

describe('a reader that was killed', together, () => {
  for (const what of ['file', 'log', 'status'] as const) {
    for (const root of [undefined, true] as const) {
      const agent = root ? ', with an agent that is root' : '';
      it(`is tried again before anything is blamed for it (${what}${agent})`, async () => {
        await workIn({ exitCodes: always.slice(1), oomKills: 1, ...(root && { root }) })[what]();
      });
    }
  }

  it('leaves a file that only the agent may read missing if the agent kills it each time', async () => {
    await assert.rejects(workIn({ exitCodes: [94, ...always] }).file(), { reason: 'missing' });
    await workIn({ exitCodes: [94, 137] }).file();
  });
});

describe('files whose unpacking', together, () => {
  /** The code of each try that is killed: a detached command has one of its own. */
  const tries = { put: always, start: [97, 97, 97] } as const;

  for (const what of ['put', 'start'] as const) {
    it(`was killed at first are unpacked again (${what})`, async () => {
      await workIn({ exitCodes: tries[what].slice(1) })[what]();
    });

    it(`was killed each time are not refused: the host or the memory is to blame (${what})`, async () => {
      const exitCodes = tries[what];
      await assert.rejects(workIn({ exitCodes })[what](), { type: 'SandboxUnavailable' });
      const full = { type: 'SandboxLost', loss: 'out-of-memory' };
      await assert.rejects(workIn({ exitCodes, oomKills: 1 })[what](), full);
    });

    it(`was killed each time as an agent that may have done it are its own loss (${what})`, async () => {
      const exitCodes = tries[what];
      const lost = { type: 'SandboxLost', loss: 'ended-inside' };
      await assert.rejects(workIn({ exitCodes })[what]('agent'), lost);
      await assert.rejects(workIn({ exitCodes, root: true })[what](), lost);
    });

    it(`failed are refused at once (${what})`, async () => {
      await assert.rejects(workIn({ exitCodes: [what === 'put' ? 2 : 96] })[what](), { name: 'FileRefused' });
    });
  }

  it('was killed with the shell that begins the command are not unpacked again, since it may have begun', async () => {
    await assert.rejects(workIn({ exitCodes: [137] }).start(), { type: 'SandboxUnavailable' });
  });
});

describe('a command', together, () => {
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
