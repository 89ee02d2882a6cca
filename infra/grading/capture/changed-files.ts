import type { ExecResult } from '../../sandbox/sandbox.ts';
import { eachInTurns, filterInTurns, joinInTurns, setInTurns, textsIn } from '../../sandbox/turns.ts';
import { gitPrelude, octalName } from '../plain-git.ts';
import { keptBase, keptRules } from '../workspace/kept-base.ts';

/** The files of a workspace. Names are latin-1, so that each byte keeps its value. */
export interface WorkspaceFiles {
  /** The files to look for changes in: the base's that still exist, and new ones that the base does not ignore. */
  readonly present: readonly string[];
  /** Files of the base that are gone. */
  readonly removed: readonly string[];
}

export type Listing = WorkspaceFiles | 'unreadable' | 'too-many';

/** The files to list: all, or none if one cannot be read; or those that can be read. */
export type Wanted = 'all' | 'readable';

/** Runs a script in the sandbox as the grader, within what is left of the capture's time. */
export type RunScript = (script: string, args: readonly string[], stdin?: Buffer) => Promise<ExecResult>;

/** The largest number of new files. No change with more can be reviewed, and git would take minutes for it. */
const maxNewFiles = 20_000;
/** The largest number of names in one list, including ignored ones: an agent makes millions of files in a minute. */
const maxNames = 500_000;
/** The bytes of warnings that are searched for names. Those behind them are evidence of the same kind. */
const maxWarningBytes = 2 ** 20;
/** The largest number of repositories that the agent may have made inside its workspace, and their deepest nesting. */
const maxRepositories = 500;
const maxDepth = 20;

/** The exit code of a script that has no permission to read a directory. */
export const unreadable = 77;

/** The end of each printed list. No name begins with it. */
const mark = '/';

/**
 * Prints three lists: the base's files, all files of the workspace, and the word `rules` if the base ignores any. Runs in the
 * workspace, with the kept base as its repository. An index that does not exist makes git list every file as new.
 */
export const listScript = `
git ls-files -z && printf '${mark}\\0' && GIT_INDEX_FILE=$GIT_DIR/none git ls-files -z -o && printf '${mark}\\0' || exit
[ ! -d ${keptRules} ] || printf 'rules\\0'
`;

/**
 * Prints the files of each inner repository of the workspace $1, then a mark. Stdin has the repositories as octalName writes them. $2 is
 * `readable` if those that cannot be read are left out.
 */
const innerScript = `
${gitPrelude}
export GIT_DIR=${keptBase} GIT_INDEX_FILE=${keptBase}/none
while IFS= read -r line; do
  # The dot keeps line feeds at the end of the name.
  inner=$(printf '%b.' "$line"); inner=$1/\${inner%.}
  ( cd "$inner" && GIT_WORK_TREE="$inner" git ls-files -z -o </dev/null ) || [ "$2" = readable ] || exit ${unreadable}
  printf '${mark}\\0'
done
`;

/** Prints those of the names on stdin that the base's rules ignore. Each begins with `./`, so that git takes none for a pattern. */
const ignoredScript = `
${gitPrelude}
cd ${keptRules} && GIT_DIR=${keptBase} GIT_WORK_TREE=${keptRules} git check-ignore -z --no-index --stdin
# 1 means that nothing is ignored.
[ $? -le 1 ]
`;

/**
 * Lists the files of a workspace from the output of `listScript`. Only the base's rules decide what is ignored; a repository
 * inside the workspace is a directory like any other. Returns the result of a script that failed.
 */
export async function listFiles(
  run: RunScript,
  workdir: string,
  listed: Buffer,
  what: Wanted = 'all',
): Promise<Listing | ExecResult> {
  const all = await lists(listed);
  if (all === null) return 'too-many';
  const [base = [], outer = [], rules = []] = all;
  const files = await withInner(run, { workdir, what }, outer);
  if (!Array.isArray(files)) return files;
  const ofBase = new Set(base);
  const fresh = await filterInTurns(files, (name) => !ofBase.has(name));
  const ignored = rules.length === 0 ? [] : await findIgnored(run, fresh);
  if (!Array.isArray(ignored)) return ignored;
  const leftOut = await setInTurns(ignored);
  const directories = directoriesOf(base);
  // An ignored file that replaces a directory of the base counts: it shows that the directory was removed.
  const counted = await filterInTurns(fresh, (name) => !leftOut.has(name) || directories.has(name));
  if (counted.length > maxNewFiles) return 'too-many';
  const found = await setInTurns(files);
  const present = [...(await filterInTurns(files, (name) => ofBase.has(name))), ...counted];
  return { present, removed: base.filter((name) => !found.has(name) && !isBelowAny(name, found)) };
}

/** Returns the names of the directories that git could not read, as it prints them, cut where they are long. */
export const unreadDirectories = ({ stderr }: Pick<ExecResult, 'stderr'>): readonly string[] =>
  namesIn(stderr, /^warning: could not open directory '([^'\n]*)/gm);

/** Returns the names that git stores in no tree, such as `.GIT/config`. */
export const refusedNames = ({ stderr }: Pick<ExecResult, 'stderr'>): readonly string[] =>
  namesIn(stderr, /^Ignoring path (.*)/gm);

const namesIn = (stderr: Buffer, pattern: RegExp): readonly string[] =>
  [...stderr.toString('latin1', 0, maxWarningBytes).matchAll(pattern)].map(([, name = '']) => name);

const closed = 'warning: could not open directory';

/** Whether a script could not read a directory. Git lists no unreadable directory, and only prints a warning. */
export const isUnreadable = ({ exitCode, stderr }: ExecResult): boolean =>
  exitCode === unreadable ||
  (exitCode !== 0 && stderr.includes('Permission denied')) ||
  stderr.includes(`\n${closed}`) ||
  stderr.toString('latin1', 0, closed.length) === closed;

/** Reads printed lists; null for more names than an agent's work ever has. */
async function lists(output: Buffer): Promise<readonly (readonly string[])[] | null> {
  const all: string[][] = [[]];
  let names = 0;
  await eachInTurns(textsIn(output, 'latin1'), (name) => {
    if (name === mark) {
      all.push([]);
      names = 0;
    } else {
      all.at(-1)?.push(name);
      names += 1;
    }
    return names <= maxNames && all.length <= maxNames;
  });
  return names <= maxNames && all.length <= maxNames ? all : null;
}

/** Replaces each inner repository, which git lists as one name with a slash at its end, by the files in it. */
async function withInner(
  run: RunScript,
  { workdir, what }: { readonly workdir: string; readonly what: Wanted },
  outer: readonly string[],
): Promise<string[] | Exclude<Listing, WorkspaceFiles> | ExecResult> {
  const files = outer.filter((name) => !name.endsWith('/'));
  let open = outer.filter((name) => name.endsWith('/'));
  for (let depth = 0; open.length > 0; depth += 1) {
    if (depth === maxDepth || open.length > maxRepositories) return 'too-many';
    const stdin = Buffer.from(open.map((name) => `${octalName(name)}\n`).join(''));
    const listed = await run(innerScript, [workdir, what], stdin);
    if (what === 'all' && isUnreadable(listed)) return 'unreadable';
    if (listed.truncated) return 'too-many';
    if (listed.exitCode !== 0 || listed.timedOut) return listed;
    const found = await lists(listed.stdout);
    if (found === null || files.length > maxNames) return 'too-many';
    const names = open.flatMap((directory, index) => (found[index] ?? []).map((name) => directory + name));
    for (const name of names) if (!name.endsWith('/')) files.push(name);
    open = names.filter((name) => name.endsWith('/'));
  }
  return files;
}

async function findIgnored(run: RunScript, names: readonly string[]): Promise<string[] | 'too-many' | ExecResult> {
  if (names.length === 0) return [];
  const ignored = await run(ignoredScript, [], await joinInTurns(dotted(names), 'latin1'));
  if (ignored.truncated) return 'too-many';
  if (ignored.exitCode !== 0 || ignored.timedOut) return ignored;
  return ((await lists(ignored.stdout))?.[0] ?? []).map((name) => name.slice(2));
}

function* dotted(names: readonly string[]): Iterable<string> {
  for (const name of names) yield `./${name}`;
}

/** Encodes names as git's `-z --stdin` reads them. */
export const stdinOf = (names: readonly string[]): Promise<Buffer> => joinInTurns(names, 'latin1');

function directoriesOf(names: readonly string[]): ReadonlySet<string> {
  const all = new Set<string>();
  for (const name of names) {
    for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
      const directory = name.slice(0, end);
      if (all.has(directory)) break;
      all.add(directory);
    }
  }
  return all;
}

/** Whether a file or link exists where this name has a directory. Adding it to the index removes all files below. */
function isBelowAny(name: string, files: ReadonlySet<string>): boolean {
  for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
    if (files.has(name.slice(0, end))) return true;
  }
  return false;
}
