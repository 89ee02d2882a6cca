import { quote } from '../../shell.ts';

/** The commands of a script that sets up a repository for its tests, separated by who may see their effects. */
export interface SetupScript {
  /** Commands for every sandbox: they leave a clean checkout of the base commit. */
  readonly setup: readonly string[];
  /** Commands for evaluations only: they extract hidden tests from a later commit. */
  readonly hiddenTests: readonly string[];
  /** The paths of the hidden tests. */
  readonly hiddenTestFiles: readonly string[];
}

/**
 * Splits `before_repo_set_cmd` of SWE-bench-Pro: a reset, a clean and a checkout of the base commit, and at the end
 * `git checkout <fix> -- <hidden tests>`. Any other git command, or another last command, is rejected, since it might reveal
 * something to the agent that it must not see.
 */
export function splitSetupScript(script: string): SetupScript | { readonly rejected: string } {
  const setup: string[] = [];
  const hiddenTests: string[] = [];
  const hiddenTestFiles: string[] = [];
  const statements = splitStatements(script);
  for (const [index, statement] of statements.entries()) {
    const words = splitWords(statement);
    if (words[0] === 'git' && !isPlain(statement)) return { rejected: statement };
    const checkout = parseFileCheckout(words);
    if (checkout !== null) {
      hiddenTests.push(extractHiddenTests(checkout));
      hiddenTestFiles.push(...checkout.paths);
    } else if (isHarmless(words) || (words[0] !== 'git' && index < statements.length - 1)) setup.push(statement);
    else return { rejected: statement };
  }
  return { setup: setup.length === 0 ? [] : [setup.join('\n')], hiddenTests, hiddenTestFiles };
}

/** Splits a script at line ends, `;` and `&&` outside of quotes. */
function splitStatements(script: string): readonly string[] {
  const found = script.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?<!&)&(?!&)|[^\n;&])+/gs) ?? [];
  return found
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '' && !statement.startsWith('#'));
}

/** Whether a statement has no pipes, redirections or expansions, whose effects are unknown. */
const isPlain = (statement: string): boolean => !/[|<>&$`(){}]/.test(statement.replaceAll(/'[^']*'|"[^"$`\\]*"/g, ''));

/** Splits a statement into words as a shell does, without expansions. */
function splitWords(statement: string): readonly string[] {
  const words = statement.replaceAll('\\\n', ' ').match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(
      /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs,
      (_, single?: string, double?: string, escaped?: string) =>
        single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
    ),
  );
}

interface FileCheckout {
  readonly commit: string;
  readonly paths: readonly string[];
}

/** Parses `git checkout <commit> [--] <paths>`. Returns null for any other command. */
function parseFileCheckout([program, verb, ...words]: readonly string[]): FileCheckout | null {
  if (program !== 'git' || verb !== 'checkout') return null;
  const [commit, ...rest] = words.filter((word) => word === '--' || !word.startsWith('-'));
  const paths = rest.filter((word) => word !== '--');
  return commit === undefined || commit === '--' || paths.length === 0 ? null : { commit, paths };
}

/** Whether a command resets, cleans or checks out a whole commit. */
function isHarmless([program, verb, ...words]: readonly string[]): boolean {
  if (program !== 'git') return false;
  return verb === 'reset' || verb === 'clean' || (verb === 'checkout' && words.length > 0);
}

/** Extracts the files into a separate work tree, so that the workspace stays at its base commit. */
const extractHiddenTests = ({ commit, paths }: FileCheckout): string =>
  [
    'repository=$(git rev-parse --absolute-git-dir) || exit 1',
    'export GIT_DIR=$repository GIT_WORK_TREE=$TEMPER_HIDDEN_TESTS GIT_INDEX_FILE=$TEMPER_HIDDEN_TESTS.index',
    `git checkout -q ${quote(commit)} -- ${paths.map(quote).join(' ')} && rm -f "$GIT_INDEX_FILE"`,
  ].join('\n');
