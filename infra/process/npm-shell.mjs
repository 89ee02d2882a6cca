import { readFileSync } from 'node:fs';

const pollMs = 500;

/**
 * Calls `ended` once the shell in which npm runs this program has ended. `npx temper` is npm, below it a shell, and below that
 * temper: a SIGTERM that npm receives ends the first two alone. Does nothing if another program started this one, or if the
 * shell's command puts it in the background, which is meant to outlive the shell.
 */
export function onNpmShellEnd(ended) {
  const shell = process.ppid;
  const command = commandOf(shell);
  const script = process.env.npm_lifecycle_script;
  if (script === undefined || command === undefined || !command.startsWith(script)) return;
  if (/(^|[^&])&($|[^&])/.test(command)) return;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    ended();
  }, pollMs);
  timer.unref();
}

/** Returns the command of a process that is a shell with a command line, as npm starts it; undefined for any other. */
function commandOf(pid) {
  try {
    const [, option, command] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return option === '-c' ? command : undefined;
  } catch {
    return undefined; // it has ended, or the system has no /proc; on macOS the shell becomes the program, so there is none
  }
}
