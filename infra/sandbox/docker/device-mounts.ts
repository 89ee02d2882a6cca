import type { Shell } from '../shell/shell.ts';

/** Prints the mount points of the container, with the shell's own commands only. */
const list = `
while read -r _ _ _ _ point _; do printf '%s\\n' "$point"; done </proc/self/mountinfo
`;
const mostBytes = 2 ** 20;

/**
 * Lists the mount points in a container with devices, without its root. What passes GPUs through mounts the files of the driver
 * there, and the daemon does not know of them: it lists their mount points among the changed files. An agent that is root can
 * replace the shell, and then hides only changes of its own.
 */
export async function listMountPoints(shell: Shell, signal: AbortSignal): Promise<readonly string[]> {
  const { stdout } = await shell.run({ role: 'grader', text: list, args: [], maxOutputBytes: mostBytes }, signal);
  return readMountPoints(stdout.toString('utf8'));
}

/** Reads a list of mount points, in which the kernel writes blanks and backslashes as octal numbers. */
export function readMountPoints(text: string): readonly string[] {
  const points = text
    .split('\n')
    .map((point) =>
      point.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
    );
  return points.filter((point) => point.startsWith('/') && point !== '/');
}
