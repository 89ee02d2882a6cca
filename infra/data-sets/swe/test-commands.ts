import { patchedFiles } from './test-patch.ts';

/** How the tests of a repository are run where its rows don't say so, and who reads their output. */
export interface TestCommand {
  readonly command: string;
  readonly logParser: string;
  /** What the shell of the tests does before them, in the workdir. */
  readonly before?: readonly string[];
  /** What a repository that no image brings needs before its base commit is made. May be done twice. */
  readonly checkedOut?: readonly string[];
  /** Are parts of it compiled into the workspace? Nothing is built anew for an evaluation. */
  readonly compiled?: true;
}

/** How the tests of the repositories of a data set are run. */
export interface TestCommands {
  readonly repositories: readonly string[];
  /** Null: nobody knows, for this repository or this version of it. */
  find(repository: string, version: string | null): TestCommand | null;
  /** Who reads the tests of a repository, whatever its version. */
  parser(repository: string): string | null;
  /** Those that are known; empty where they make no difference. */
  versions(repository: string): readonly string[];
}

const pytest: TestCommand = { command: 'pytest -rA', logParser: 'parse_log_pytest' };

const sweGym: Readonly<Record<string, TestCommand>> = {
  ...Object.fromEntries(
    [
      'bokeh/bokeh',
      'conan-io/conan',
      'dask/dask',
      'facebookresearch/hydra',
      'getmoto/moto',
      'iterative/dvc',
      'modin-project/modin',
      'pandas-dev/pandas',
      'Project-MONAI/MONAI',
      'pydantic/pydantic',
    ].map((repository) => [repository, pytest]),
  ),
  'python/mypy': { ...pytest, command: 'pytest -rA -k' },
};

/** The repositories of SWE-Gym. */
export const sweGymCommands: TestCommands = {
  repositories: Object.keys(sweGym),
  find: (repository) => sweGym[repository] ?? null,
  parser: (repository) => sweGym[repository]?.logParser ?? null,
  versions: () => [],
};

/** Files that a test patch may bring, and that are no tests. */
const data = /\.(?:json|png|csv|txt|md|jpg|jpeg|pkl|yml|yaml|toml)$/;

/** What the command is to run: the files of the test patch, in the form that the repository's runner takes. */
export function testSelection(repository: string, testPatch: string): readonly string[] {
  // mypy's cases are blocks of data files, chosen by name.
  if (repository === 'python/mypy') {
    const cases = [...testPatch.matchAll(/\[case ([^\]\s]+)\]/g)].map(([, name = '']) => name);
    return cases.length === 0 ? [] : [[...new Set(cases)].join(' or ')];
  }
  const files = patchedFiles(testPatch)
    .filter(({ path, written }) => written && !data.test(path))
    .map(({ path }) => path);
  if (repository !== 'django/django') return files;
  // Labels are names of modules: a template or a script for browsers is none.
  return files
    .filter((path) => path.endsWith('.py'))
    .map((path) =>
      path
        .slice(0, -'.py'.length)
        .replace(/^tests\//, '')
        .replaceAll('/', '.'),
    );
}
