import type { ExecResult } from '../../sandbox/sandbox.ts';
import { gitPrelude, octal } from '../plain-git.ts';
import { keptBase, keptRules } from '../workspace/kept-base.ts';

/** Names are latin-1, so that each byte of them stays what it is. */
export interface Files {
  /** Those that changes are to be looked for in: the base's that are still there, and new ones that it does not ignore. */
  readonly present: readonly string[];
  /** Files of the base that are gone. */
  readonly removed: readonly string[];
}

export type Listing = Files | 'unreadable' | 'too-many';

/** Runs a script in the sandbox as the grader, within what is left of the capture's time. */
export type RunScript = (script: string, args: readonly string[], stdin?: Buffer) => Promise<ExecResult>;

/** A change of more new files is none that anybody could review, and git would take minutes for it. */
const maxNewFiles = 20_000;
/** Repositories that the agent made inside of its workspace, one in another. */
const maxRepositories = 500;
const maxDepth = 20;

/** The exit code of a script that may not read a directory. */
export const unreadable = 77;

/** Ends each list; no name begins so. */
const mark = '/';

/** $1 workspace. Three lists: files of the base, files of the workspace, and \`rules\` if the base ignores any. */
export const listScript = `
git ls-files -z && printf '${mark}\\0' && GIT_INDEX_FILE=$GIT_DIR/none git ls-files -z -o && printf '${mark}\\0' || exit
[ ! -d ${keptRules} ] || printf 'rules\\0'
`;

/** $1 workspace; on stdin its inner repositories, one a line. Prints the files of each, then a mark. */
const innerScript = `
${gitPrelude}
export GIT_DIR=${keptBase} GIT_INDEX_FILE=${keptBase}/none
while IFS= read -r line; do
  inner=$(printf '%b.' "$line"); inner=$1/\${inner%.}
  ( cd "$inner" && GIT_WORK_TREE="$inner" git ls-files -z -o </dev/null ) || exit ${unreadable}
  printf '${mark}\\0'
done
`;

/** On stdin new names, each after \`./\`; prints those that the base's rules ignore. */
const ignoredScript = `
${gitPrelude}
cd ${keptRules} && GIT_DIR=${keptBase} GIT_WORK_TREE=${keptRules} git check-ignore -z --no-index --stdin
[ $? -le 1 ]
`;

/** What is in a workspace. Only the base's rules say what is ignored; a repository inside is a directory like any other. */
export async function filesIn(run: RunScript, workdir: string, listed: Buffer): Promise<Listing | ExecResult> {
  const [base = [], outer = [], rules = []] = lists(listed);
  const files = await withInner(run, workdir, outer);
  if (!Array.isArray(files)) return files;
  const kept = new Set(base);
  const fresh = files.filter((name) => !kept.has(name));
  const ignored = rules.length === 0 ? [] : await ignoredOf(run, fresh);
  if (!Array.isArray(ignored)) return ignored;
  const leftOut = new Set(ignored);
  const places = directoriesOf(base);
  // What takes the place of a directory of the base is no file of its own: it is how that directory was removed.
  const counted = fresh.filter((name) => !leftOut.has(name) || places.has(name));
  if (counted.length > maxNewFiles) return 'too-many';
  const found = new Set(files);
  const present = [...files.filter((name) => kept.has(name)), ...counted];
  return { present, removed: base.filter((name) => !found.has(name) && !isBelow(name, found)) };
}

/** Whoever can't be read is not listed, which git says as a warning. */
export const isUnreadable = ({ exitCode, stderr }: ExecResult): boolean =>
  exitCode === unreadable ||
  (exitCode !== 0 && stderr.includes('Permission denied')) ||
  /^warning: could not open directory/m.test(stderr.toString('latin1'));

function lists(output: Buffer): readonly (readonly string[])[] {
  const all: string[][] = [[]];
  for (const name of output.toString('latin1').split('\0')) {
    if (name === mark) all.push([]);
    else if (name !== '') all.at(-1)?.push(name);
  }
  return all;
}

/** Git shows a repository inside as one name with a slash at its end. */
async function withInner(
  run: RunScript,
  workdir: string,
  outer: readonly string[],
): Promise<string[] | Exclude<Listing, Files> | ExecResult> {
  const files = outer.filter((name) => !name.endsWith('/'));
  let open = outer.filter((name) => name.endsWith('/'));
  for (let depth = 0; open.length > 0; depth += 1) {
    if (depth === maxDepth || open.length > maxRepositories) return 'too-many';
    const listed = await run(innerScript, [workdir], Buffer.from(open.map((name) => `${octal(name)}\n`).join('')));
    if (isUnreadable(listed)) return 'unreadable';
    if (listed.truncated) return 'too-many';
    if (listed.exitCode !== 0 || listed.timedOut) return listed;
    const found = lists(listed.stdout);
    const names = open.flatMap((directory, index) => (found[index] ?? []).map((name) => directory + name));
    for (const name of names) if (!name.endsWith('/')) files.push(name);
    open = names.filter((name) => name.endsWith('/'));
  }
  return files;
}

async function ignoredOf(run: RunScript, names: readonly string[]): Promise<string[] | 'too-many' | ExecResult> {
  if (names.length === 0) return [];
  const asked = await run(ignoredScript, [], stdinOf(names.map((name) => `./${name}`)));
  if (asked.truncated) return 'too-many';
  if (asked.exitCode !== 0 || asked.timedOut) return asked;
  return (lists(asked.stdout)[0] ?? []).map((name) => name.slice(2));
}

/** Names as git takes them from stdin. */
export const stdinOf = (names: readonly string[]): Buffer =>
  Buffer.from(names.map((name) => `${name}\0`).join(''), 'latin1');

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

/** Does a file or link lie where this name has a directory? Then that one's place in the index says all. */
function isBelow(name: string, files: ReadonlySet<string>): boolean {
  for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
    if (files.has(name.slice(0, end))) return true;
  }
  return false;
}
