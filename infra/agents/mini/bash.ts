import { spawn } from 'node:child_process';
import type { Place } from './tools.ts';

/** The model sees so many characters from each end of an output. */
const shownCharacters = 4000;
/** Kept meanwhile; a command that prints for ever must not fill our memory. */
const keptCharacters = 1_000_000;

/** What left the group, as a daemon does, may hold the pipes; it is not waited for. */
const lingerMs = 300;

/** Runs a command in a process group of its own, which ends with it or when its time is up. */
export function runBash(command: string, { workdir, environment, commandTimeoutMs }: Place): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', command], {
      cwd: workdir,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment,
    });
    let output = '';
    let status = '';
    const keep = (chunk: string) => {
      output = shorten(output + chunk, keptCharacters);
    };
    const finish = () => {
      child.stdout.destroy();
      child.stderr.destroy();
      const text = shorten(output.trimEnd(), 2 * shownCharacters);
      resolve(status === '' ? text : `${text}\n[${status}]`.trimStart());
    };
    child.stdout.setEncoding('utf8').on('data', keep);
    child.stderr.setEncoding('utf8').on('data', keep);
    const timer = setTimeout(() => {
      status = `timed out after ${commandTimeoutMs / 1000} s`;
      endGroup(child.pid);
    }, commandTimeoutMs);
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      if (code !== 0) status ||= `exit status ${code ?? signal}`;
      endGroup(child.pid);
      const linger = setTimeout(finish, lingerMs);
      child.once('close', () => {
        clearTimeout(linger);
        finish();
      });
    });
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of the group is left.
  }
}

function shorten(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const half = Math.floor(characters / 2);
  return `${text.slice(0, half)}\n[${text.length - 2 * half} characters left out]\n${text.slice(-half)}`;
}
