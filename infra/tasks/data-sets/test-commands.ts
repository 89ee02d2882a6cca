import { patchedFiles } from './test-patch.ts';

/** How the tests of a repository are run where its rows don't say so, and who reads their output. */
export interface TestCommand {
  readonly command: string;
  readonly logParser: string;
}

const pytest: TestCommand = { command: 'pytest -rA', logParser: 'parse_log_pytest' };
const pytestV2: TestCommand = { ...pytest, logParser: 'parse_log_pytest_v2' };
const pytestOptions: TestCommand = { ...pytest, logParser: 'parse_log_pytest_options' };

/** The repositories of SWE-bench. */
export const sweBenchCommands: Readonly<Record<string, TestCommand>> = {
  'astropy/astropy': pytestV2,
  'django/django': {
    command: './tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1',
    logParser: 'parse_log_django',
  },
  'matplotlib/matplotlib': { ...pytest, logParser: 'parse_log_matplotlib' },
  'mwaskom/seaborn': { command: 'pytest --no-header -rA', logParser: 'parse_log_seaborn' },
  'pallets/flask': pytest,
  'psf/requests': pytestOptions,
  'pydata/xarray': pytest,
  'pylint-dev/pylint': pytestOptions,
  'pytest-dev/pytest': pytest,
  'scikit-learn/scikit-learn': pytestV2,
  'sphinx-doc/sphinx': { command: 'tox --current-env -epy39 -v --', logParser: 'parse_log_pytest_v2' },
  'sympy/sympy': {
    command: "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
    logParser: 'parse_log_sympy',
  },
};

/** The repositories of SWE-Gym. */
export const sweGymCommands: Readonly<Record<string, TestCommand>> = {
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
  return files.map((path) =>
    path
      .replace(/\.py$/, '')
      .replace(/^tests\//, '')
      .replaceAll('/', '.'),
  );
}
