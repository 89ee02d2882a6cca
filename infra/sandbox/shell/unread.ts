import { setTimeout as delay } from 'node:timers/promises';
import { killedCode } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import { type Role, rootUid } from './accounts.ts';
import { countOomKills } from './scripts.ts';
import type { ScriptResult, Shell } from './shell.ts';

const never = new AbortController().signal;
/** The highest exit code of a program that ended by itself, but for those of a shell that can't start it. */
const lastOwnCode = 125;
/** The highest exit code of a program that no signal ended. */
const lastUnkilledCode = 128;
/** The pauses between the tries of a script that is killed, after which a busy machine may have room for it. */
const pausesMs = [100, 1_000];

/** Whether a script ended without having looked: it was killed, or one of its programs could not be started. */
export const endedEarly = ({ exitCode }: Pick<ScriptResult, 'exitCode'>): boolean => exitCode > lastOwnCode;

/** Whether a signal ended a script. */
export const wasKilled = ({ exitCode }: Pick<ScriptResult, 'exitCode'>): boolean => exitCode > lastUnkilledCode;

/**
 * Runs a script that can be repeated until it is not killed, a few times. The host may kill one once; what still kills it then is
 * most likely what runs in the sandbox.
 */
export async function untilUnkilled<Result>(
  run: () => Promise<Result>,
  isKilled: (result: Result) => boolean,
): Promise<Result> {
  for (const pauseMs of pausesMs) {
    const result = await run();
    if (!isKilled(result)) return result;
    await delay(pauseMs);
  }
  return run();
}

/** The work of a script that ended early, such as `read /a`, and the account that it ran as. */
interface Undone {
  readonly what: string;
  readonly role: Role;
  readonly evidence: string;
}

/** Returns the failure for a script that was killed, which says nothing about the files that it was to read or write. */
export async function killed(
  shell: Pick<Shell, 'name' | 'run' | 'uidOf'>,
  { what, role, evidence }: Undone,
): Promise<SandboxFailure> {
  const text = `could not ${what} in sandbox ${shell.name}`;
  const inside = () => new SandboxFailure('SandboxLost', text, { evidence, loss: 'ended-inside' });
  if (shell.uidOf('agent') === rootUid) return inside();
  if (await ranOutOfMemory(shell)) {
    const full = `${text}, since the kernel has ended programs of the sandbox because its memory was full`;
    return new SandboxFailure('SandboxLost', full, { evidence, loss: 'out-of-memory' });
  }
  // An agent that is not root can kill the programs of its own uid, and no others.
  if (shell.uidOf('agent') === shell.uidOf(role)) return inside();
  return new SandboxFailure('SandboxUnavailable', `${text}, since its program was killed; the stage is retried`, {
    evidence,
  });
}

/** Returns the failure for a script that ended before it had read what it is named after, which says nothing about that. */
export async function unread(
  shell: Pick<Shell, 'name' | 'run' | 'uidOf'>,
  what: string,
  { exitCode, stderr }: Pick<ScriptResult, 'exitCode' | 'stderr'>,
): Promise<SandboxFailure> {
  const evidence = `exit code ${exitCode}: ${stderr.toString('utf8').trim().slice(-300)}`;
  if (wasKilled({ exitCode })) return killed(shell, { what: `read ${what}`, role: 'grader', evidence });
  return new SandboxFailure('Internal', `could not read ${what} in sandbox ${shell.name}`, { evidence });
}

async function ranOutOfMemory(shell: Pick<Shell, 'run'>): Promise<boolean> {
  const { exitCode, stdout } = await shell.run({ role: 'keeper', text: countOomKills, args: [] }, never);
  return exitCode === killedCode || Number.parseInt(String(stdout), 10) > 0;
}
