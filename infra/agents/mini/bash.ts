import { spawn } from 'node:child_process';

/** The directory that tools work in, and how they run commands there. */
export interface Workspace {
  readonly workdir: string;
  /** The whole environment of commands. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly commandTimeoutMs: number;
}

/** The model sees this many characters from each end of a command's output. */
const shownCharacters = 4000;
/** Limit while the command runs: one that never stops printing must not fill the memory. */
const keptCharacters = 1_000_000;

/** A process that left the group, such as a daemon, may keep the pipes open; this is how long they are waited for. */
const lingerMs = 300;

/** Runs a command in its own process group, which is killed when the command ends or times out. Returns what the model sees. */
export function runBash(command: string, { workdir, environment, commandTimeoutMs }: Workspace): Promise<string> {
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
      // A turn of the event loop reads what the command wrote before its end, however late this process gets to it.
      const linger = setTimeout(() => setImmediate(finish), lingerMs);
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
    // The group has already ended.
  }
}

function shorten(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const half = Math.floor(characters / 2);
  return `${text.slice(0, half)}\n[${text.length - 2 * half} characters left out]\n${text.slice(-half)}`;
}
