/** Files that an interpreter or a runner executes before the tests, found by name alone. No solution needs to add one. */
const interpreterHooks = [
  '.git',
  'sitecustomize.py',
  'usercustomize.py',
  '**/site-packages/*.pth',
  '**/dist-packages/*.pth',
  // pytest looks for plugins there.
  '*.egg-info/',
  '*.dist-info/',
];

/** Modules that `python -m` looks for in the working directory: the runner, and what it loads first. */
export const runnerModules: readonly string[] = ['pytest', '_pytest', 'pluggy', 'unittest'];

/** Returns the paths at which a module of this name would be found. */
export const modulePaths = (name: string): readonly string[] => [
  `/${name}.py`,
  `/${name}.pyc`,
  `/${name}*.so`,
  `/${name}/__init__.*`,
];

const scriptEndings = ['js', 'jsx', 'ts', 'tsx', 'mjs', 'cjs'];

/** Tests, by their directories and names, for the runners that the data sets use. */
const tests = [
  'tests/',
  '__tests__/',
  '/test/',
  '**/src/test/',
  // Files that tests read or compare with.
  '**/__snapshots__/*.snap',
  'testdata/',
  'tests.rs',
  // Tests of a package in a monorepo. In other languages `test/` may be a module.
  ...scriptEndings.map((ending) => `**/test/**/*.${ending}`),
  'test_*.py',
  '*_test.py',
  '*_test.go',
  ...scriptEndings.flatMap((ending) => [`*.test.${ending}`, `*.spec.${ending}`]),
  '*Test.php',
  '*Test.java',
  '*Tests.java',
  '*_test.cc',
  '*_test.cpp',
  '*.bats',
];

/** Files that say how tests are run, and may run code of their own. */
export const testConfiguration = [
  // Python
  'conftest.py',
  'pytest.ini',
  '.pytest.ini',
  'pytest.toml',
  '.pytest.toml',
  'tox.ini',
  '.coveragerc',
  'noxfile.py',
  // JavaScript
  'jest.config.*',
  'vitest.config.*',
  'vitest.workspace.*',
  'playwright.config.*',
  'cypress.config.*',
  '.mocharc',
  '.mocharc.*',
  'ava.config.*',
  '.taprc',
  '.nycrc',
  '.nycrc.*',
  'karma.conf.*',
  '.npmrc',
  '.yarnrc',
  '.yarnrc.yml',
  'bunfig.toml',
  // PHP
  'phpunit.xml',
  'phpunit.xml.dist',
  'phpunit.dist.xml',
  // Rust
  '.config/nextest.toml',
  '.cargo/config',
  '.cargo/config.toml',
];

/** The files of a task that the diff of an agent must not change. */
export interface Protection {
  /** Whether the tests are part of the repository that the agent works in. If not, they come from `/tests` alone. */
  readonly testsInRepository: boolean;
  /** More patterns of paths that belong to the task, and with a `!` of those that do not; see patterns.ts. */
  readonly paths: readonly string[];
  /** Modules with a runner's name that the repository has at its base commit (protectionInWorkspace). */
  readonly ownModules?: readonly string[];
}

/**
 * Returns the patterns of the paths that an evaluation takes from the task's base commit, never from a diff. If the hidden
 * tests are complete, an agent may be asked to write tests or their configuration: then only files are protected that no
 * honest solution adds.
 */
export function protectedPatterns({ testsInRepository, paths, ownModules = [] }: Protection): readonly string[] {
  const modules = runnerModules.filter((name) => !ownModules.includes(name)).flatMap(modulePaths);
  return [...interpreterHooks, ...modules, ...(testsInRepository ? [...tests, ...testConfiguration] : []), ...paths];
}
