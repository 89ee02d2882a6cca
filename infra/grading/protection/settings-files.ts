import { isUtf8 } from 'node:buffer';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { octalName } from '../plain-git.ts';
import { requireSuccess } from '../workspace/require-success.ts';

/*
 * The settings files of a workspace that are merged. A diff may change thousands of them, so one command handles all.
 */

const timeoutMs = 120_000;
/** No settings file is larger. */
const fileBytes = 2 ** 20;
/** The limit of all files together, with what is printed about them. */
export const mostSettingsBytes = 16 * 2 ** 20;
/** Files of one program that prints them; the length of its arguments is limited. */
const atOnce = 200;

/** The beginning of a loop over the paths on stdin, in the workspace $1. */
const eachPath = `
cd "$1" || exit
set --
while IFS= read -r line; do
  # The dot keeps line feeds at the end of the path.
  case $line in *\\\\*) path=$(printf '%b.' "$line") path=\${path%.} ;; *) path=$line ;; esac
`;

/**
 * Prints files, in portions: a line with a letter for each path (`f` a file, `n` nothing, `o` something else), a line with the
 * size of each file, and the files.
 */
const readScript = `
print() {
  printf '%s\\n' "$kinds" && kinds= || return
  [ $# -eq 0 ] || { stat -c %s -- "$@" && cat -- "$@"; }
}
look() {
  above=. rest=$path
  while [ "$rest" != "\${rest#*/}" ]; do
    above=$above/\${rest%%/*} rest=\${rest#*/}
    [ ! -L "$above" ] || { kind=o; return; }
  done
  if [ -L "./$path" ]; then kind=o
  elif [ -f "./$path" ] && [ -r "./$path" ]; then kind=f
  elif [ -e "./$path" ]; then kind=o
  else kind=n; fi
}
kinds=
${eachPath}
  look
  kinds=$kinds$kind
  [ $kind != f ] || set -- "$@" "./$path"
  [ \${#kinds} -lt ${atOnce} ] || { print "$@" && set -- || exit; }
done
[ -z "$kinds" ] || print "$@"
`;

/** Removes files. */
const removeScript = `
${eachPath}
  set -- "$@" "./$path"
  [ $# -lt ${atOnce} ] || { rm -f -- "$@" && set -- || exit; }
done
[ $# -eq 0 ] || rm -f -- "$@"
`;

/** The content of a file: null if there is no file, undefined if the file cannot be merged since it is too large or not a regular file. */
export type SettingsText = string | null | undefined;

/** Thrown if a command on settings files runs out of time. */
export class SettingsLate extends Error {}

interface SettingsFiles {
  readonly workdir: string;
  /** Paths relative to the workdir, in latin-1. */
  readonly names: readonly string[];
}

/** Whether a file can be written under a name, given in latin-1: its bytes are UTF-8, and it stays in the workspace. */
const isPlain = (name: string): boolean =>
  isUtf8(Buffer.from(name, 'latin1')) &&
  !name.includes('\0') &&
  !name.split('/').some((part) => part === '' || part === '.' || part === '..');

/**
 * Reads settings files of a workspace, as its owner. If all together are too large, none can be merged. Throws SettingsLate or
 * SandboxUnavailable.
 */
export async function readSettings(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, names }: SettingsFiles,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SettingsText>> {
  const found = new Map<string, SettingsText>(names.map((name) => [name, undefined]));
  const plain = names.filter(isPlain);
  if (plain.length === 0) return found;
  const { stdout, truncated } = await run(sandbox, readScript, { workdir, names: plain }, signal);
  if (truncated) return found;
  for (const [index, text] of textsIn(stdout, plain.length).entries()) found.set(plain[index] ?? '', text);
  return found;
}

/** Removes settings files of a workspace, as its owner. Throws SettingsLate or SandboxUnavailable. */
export async function removeSettings(
  sandbox: Pick<Sandbox, 'exec'>,
  files: SettingsFiles,
  signal: AbortSignal,
): Promise<void> {
  if (files.names.length > 0) await run(sandbox, removeScript, files, signal);
}

async function run(
  sandbox: Pick<Sandbox, 'exec'>,
  script: string,
  { workdir, names }: SettingsFiles,
  signal: AbortSignal,
): Promise<ExecResult> {
  const limits = { timeoutMs, maxOutputBytes: mostSettingsBytes };
  const argv = ['sh', '-c', script, 'settings', workdir] as const;
  const stdin = Buffer.from(names.map((name) => `${lineOf(name)}\n`).join(''));
  const done = await sandbox.exec({ account: 'agent', cwd: '/', argv: [...argv], env: {}, stdin, ...limits }, signal);
  const what = `the command that merges ${names.length} settings files in ${workdir}`;
  if (done.timedOut) throw new SettingsLate(`${what} took longer than ${timeoutMs / 1000} s`);
  requireSuccess(done, what);
  return done;
}

/** Returns a name as a line that needs no program to be read, unless it has unusual characters. */
const lineOf = (name: string): string => (/^[ -[\]-~]+$/.test(name) ? name : octalName(name));

/** Reads what `readScript` prints. */
function textsIn(output: Buffer, count: number): readonly SettingsText[] {
  const texts: SettingsText[] = [];
  let at = 0;
  const line = (): string => {
    const end = output.indexOf('\n', at);
    if (end < 0) throw retried(`expected the kinds and sizes of ${count} settings files, got those of ${texts.length}`);
    const text = output.toString('latin1', at, end);
    at = end + 1;
    return text;
  };
  while (texts.length < count) {
    const kinds = [...line()];
    const sizes = kinds.map((kind) => (kind === 'f' ? Number(line()) : 0));
    for (const [index, kind] of kinds.entries()) {
      const size = sizes[index] ?? 0;
      const text = size > fileBytes ? undefined : output.toString('utf8', at, at + size);
      texts.push(kind === 'f' ? text : kind === 'n' ? null : undefined);
      at += size;
    }
  }
  if (at !== output.length) throw retried(`expected ${at} bytes of ${count} settings files, got ${output.length}`);
  return texts;
}

const retried = (what: string): TemperFailure =>
  new TemperFailure('SandboxUnavailable', `${what}; the evaluation is retried`);
