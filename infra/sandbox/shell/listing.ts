import { type CarriedLimits, carriedLimits, type Listing } from '../changes.ts';
import { killedCode } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import { eachInTurns, textsIn } from '../turns.ts';
import type { Shell } from './shell.ts';

/** The largest answer to one command. */
const mostBytes = 32 * 2 ** 20;
/** Paths of one command, whose arguments are limited to two megabytes. */
const atOnce = 500;

/** Prints the paths in each of the directories $@ that can be read, and then its name after an `=`. */
const list = `
for d in "$@"; do
  [ -d "$d" ] && [ ! -L "$d" ] && [ -r "$d" ] && [ -x "$d" ] || continue
  find "$d" -mindepth 1 -maxdepth 1 -print0 && printf '=%s\\0' "$d"
done
exit 0
`;

/** Removes the paths $@ as far as this account may, and prints what is left of them. */
const removeAll = `
rm -rf -- "$@" 2>/dev/null
for p in "$@"; do [ ! -e "$p" ] && [ ! -L "$p" ] || printf '%s\\0' "$p"; done
exit 0
`;

/** The failure of a list whose program was killed, as the kernel does where memory is full. */
export class ListKilled extends SandboxFailure {
  constructor(sandbox: string) {
    super('SandboxUnavailable', `the program that lists directories of ${sandbox} was killed; temper tries again`);
  }
}

/**
 * Lists directories by their names; a path that is no directory, and what no account may read, is left out. Returns null for more
 * names than are carried.
 */
export async function listDirectories(
  shell: Shell,
  directories: readonly string[],
  signal: AbortSignal,
  limits: CarriedLimits = carriedLimits,
): Promise<readonly Listing[] | null> {
  const found = new Map<string, readonly string[]>();
  let [items, characters] = [0, 0];
  for (const role of ['grader', 'agent'] as const) {
    for (const args of chunks(directories.filter((one) => !found.has(one)))) {
      const listed = await shell.run({ role, text: list, args, maxOutputBytes: mostBytes }, signal);
      const { stdout, truncated, exitCode } = listed;
      if (exitCode === killedCode) throw new ListKilled(shell.name);
      if (exitCode !== 0)
        throw new SandboxFailure('Internal', `listing directories of ${shell.name} ended with exit code ${exitCode}`, {
          evidence: listed.stderr.toString('utf8').trim().slice(-300),
        });
      let names: string[] = [];
      await eachInTurns(textsIn(stdout, 'utf8'), (path) => {
        items += 1;
        if (path.startsWith('=')) {
          found.set(path.slice(1), names);
          names = [];
          return;
        }
        const name = path.slice(path.lastIndexOf('/') + 1);
        characters += name.length;
        if (name !== '') names.push(name);
      });
      if (truncated || items > limits.files || characters > limits.characters) return null;
    }
  }
  return [...found].map(([directory, names]) => ({ directory, names }));
}

/** Removes paths, each as the account that may. Returns those that are still there. */
export async function removePaths(
  shell: Shell,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const left: string[] = [];
  for (const args of chunks(paths)) {
    let remaining: readonly string[] = args;
    for (const role of ['agent', 'grader'] as const) {
      if (remaining.length === 0) break;
      const { stdout } = await shell.run({ role, text: removeAll, args: remaining, maxOutputBytes: mostBytes }, signal);
      remaining = [...textsIn(stdout, 'utf8')];
    }
    left.push(...remaining);
  }
  return left;
}

function chunks(paths: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(paths.length / atOnce) }, (_, index) =>
    paths.slice(index * atOnce, (index + 1) * atOnce),
  );
}
