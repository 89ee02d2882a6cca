import { killedCode } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import { rootUid } from './accounts.ts';
import { countOomKills } from './scripts.ts';
import type { ScriptResult, Shell } from './shell.ts';

const never = new AbortController().signal;
/** The highest exit code of a program that ended by itself, but for those of a shell that can't start it. */
const lastOwnCode = 125;

/** Whether a script ended without having looked: it was killed, or one of its programs could not be started. */
export const endedEarly = ({ exitCode }: Pick<ScriptResult, 'exitCode'>): boolean => exitCode > lastOwnCode;

/** Returns the failure for a script that ended before it had read what it is named after, which says nothing about that. */
export async function unread(
  shell: Pick<Shell, 'name' | 'run' | 'uidOf'>,
  what: string,
  { exitCode, stderr }: Pick<ScriptResult, 'exitCode' | 'stderr'>,
): Promise<SandboxFailure> {
  const evidence = `exit code ${exitCode}: ${stderr.toString('utf8').trim().slice(-300)}`;
  const text = `could not read ${what} in sandbox ${shell.name}`;
  if (exitCode <= 128) return new SandboxFailure('Internal', text, { evidence });
  // No other agent can kill the programs of the keeper and the grader.
  if (shell.uidOf('agent') === rootUid)
    return new SandboxFailure('SandboxLost', text, { evidence, loss: 'ended-inside' });
  if (exitCode === killedCode && (await ranOutOfMemory(shell))) {
    const full = `${text}, since the kernel has ended programs of the sandbox because its memory was full`;
    return new SandboxFailure('SandboxLost', full, { evidence, loss: 'out-of-memory' });
  }
  return new SandboxFailure('SandboxUnavailable', `${text}, since its program was killed; the stage is retried`, {
    evidence,
  });
}

async function ranOutOfMemory(shell: Pick<Shell, 'run'>): Promise<boolean> {
  const { exitCode, stdout } = await shell.run({ role: 'keeper', text: countOomKills, args: [] }, never);
  return exitCode === killedCode || Number.parseInt(String(stdout), 10) > 0;
}
