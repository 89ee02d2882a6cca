import { quote } from './harbor-files.ts';

/** Commands that bring a repository to where its tests are run, by who may see what they do. */
export interface RepositoryCommands {
  /** For the agent too: at the base commit, and clean. */
  readonly setup: readonly string[];
  /** For evaluations alone: what takes hidden tests out of a later commit. */
  readonly hiddenTests: readonly string[];
  /** The hidden tests' files. */
  readonly files: readonly string[];
}

/**
 * Takes `before_repo_set_cmd` of SWE-bench-Pro apart: a reset, a clean and a checkout of the base commit, and at last
 * `git checkout <fix> -- <hidden tests>`. A command of git that may bring anything else, or a last command that is none of
 * these, is refused: nobody knows whether an agent may have what it brings.
 */
export function splitRepositoryCommands(script: string): RepositoryCommands | { readonly refused: string } {
  const setup: string[] = [];
  const hiddenTests: string[] = [];
  const files: string[] = [];
  const statements = statementsOf(script);
  for (const [index, statement] of statements.entries()) {
    const words = wordsOf(statement);
    if (words[0] === 'git' && !isPlain(statement)) return { refused: statement };
    const brought = broughtBy(words);
    if (brought !== null) {
      hiddenTests.push(gather(brought));
      files.push(...brought.paths);
    } else if (isHarmless(words) || (words[0] !== 'git' && index < statements.length - 1)) setup.push(statement);
    else return { refused: statement };
  }
  return { setup: setup.length === 0 ? [] : [setup.join('\n')], hiddenTests, files };
}

/** Commands between line ends, `;` and `&&` that stand outside of quotes. */
function statementsOf(script: string): readonly string[] {
  const found = script.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?<!&)&(?!&)|[^\n;&])+/gs) ?? [];
  return found
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '' && !statement.startsWith('#'));
}

/** Without pipes, redirections and expansions, which may bring anything. */
const isPlain = (statement: string): boolean => !/[|<>&$`(){}]/.test(statement.replaceAll(/'[^']*'|"[^"$`\\]*"/g, ''));

/** As a shell reads them, without expansions. */
function wordsOf(statement: string): readonly string[] {
  const words = statement.replaceAll('\\\n', ' ').match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(
      /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs,
      (_, single?: string, double?: string, escaped?: string) =>
        single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
    ),
  );
}

interface Brought {
  readonly commit: string;
  readonly paths: readonly string[];
}

/** `git checkout <commit> [--] <paths>`; null for all else. */
function broughtBy([program, verb, ...words]: readonly string[]): Brought | null {
  if (program !== 'git' || verb !== 'checkout') return null;
  const [commit, ...rest] = words.filter((word) => word === '--' || !word.startsWith('-'));
  const paths = rest.filter((word) => word !== '--');
  return commit === undefined || commit === '--' || paths.length === 0 ? null : { commit, paths };
}

/** Of a checkout only that of one commit, as a whole. */
function isHarmless([program, verb, ...words]: readonly string[]): boolean {
  if (program !== 'git') return false;
  return verb === 'reset' || verb === 'clean' || (verb === 'checkout' && words.length > 0);
}

/** Into a work tree of their own: the workspace stays at its base commit. */
const gather = ({ commit, paths }: Brought): string =>
  [
    'repository=$(git rev-parse --absolute-git-dir) || exit 1',
    'export GIT_DIR=$repository GIT_WORK_TREE=$TEMPER_HIDDEN_TESTS GIT_INDEX_FILE=$TEMPER_HIDDEN_TESTS.index',
    `git checkout -q ${quote(commit)} -- ${paths.map(quote).join(' ')} && rm -f "$GIT_INDEX_FILE"`,
  ].join('\n');
