import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { runsAsRoot, trialAccounts } from './accounts.ts';
import { createBubblewrap } from './bubblewrap.ts';
import type { Confinement } from './confinement.ts';
import { splitEnvironment } from './environment.ts';
import { createLayout, readSandboxDirectory } from './layout.ts';
import { createUnshare } from './unshare.ts';

/** The kinds of confinement, strongest first. */
const factories: readonly ((root: string) => Confinement)[] = [createBubblewrap, createUnshare];

/** A host on which no confinement works, with the reason for each. */
export interface NoConfinement {
  readonly reasons: readonly string[];
}

/** Returns the first confinement that passes a trial run. `root` is the directory of local sandboxes. */
export function chooseConfinement(root: string, candidates = factories): Confinement | NoConfinement {
  const reasons: string[] = [];
  for (const create of candidates) {
    try {
      const confinement = create(root);
      const reason = tryOut(confinement);
      if (reason === undefined) return confinement;
      reasons.push(`${confinement.name}: ${reason}`);
    } catch (error) {
      reasons.push(errorMessage(error));
    }
  }
  return { reasons };
}

/** An exit code that a failing set-up would not produce by chance. */
const trialCode = 42;
const trialTimeoutMs = 10_000;
const trialLimits = { cpus: 1, memoryMb: 256, diskMb: 16, pids: 4_096 };

/** Runs a confined shell in a sandbox of its own. Returns the reason of a failure, or undefined. */
function tryOut(confinement: Confinement): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'temper-trial-'));
  const labels = { stack: 'trial', run: '', rollout: '', epoch: 0, purpose: 'agent' as const, expiresAtMs: 0 };
  const spec = { name: 'trial', image: '', labels, ...trialLimits, workdir: '/workspace', mounts: [] };
  createLayout(directory, { spec, accounts: trialAccounts(), createdAtMs: 0 });
  const pidFile = openSync(join(directory, 'pid'), 'w');
  try {
    const { outer, inner } = splitEnvironment({ env: {} }, '/');
    const argv = ['/bin/sh', '-c', `cd /workspace && : >f && exit ${trialCode}`] as const;
    const command = {
      sandbox: readSandboxDirectory(directory),
      account: 'agent',
      argv: [...argv],
      cwd: '/',
      detached: false,
    } as const;
    const [program = '', ...args] = confinement.commandLine({ ...command, innerEnv: inner });
    const ran = spawnSync(program, args, {
      env: outer,
      stdio: ['ignore', 'ignore', 'pipe', 'ignore', 'ignore', pidFile],
      timeout: trialTimeoutMs,
    });
    if (ran.status === trialCode) return undefined;
    return (
      String(ran.stderr).trim() ||
      ran.error?.message ||
      `exit code ${ran.status} as uid ${runsAsRoot() ? 0 : 'of a user'}`
    );
  } finally {
    closeSync(pidFile);
    rmSync(directory, { recursive: true, force: true });
  }
}
