import { named, type TestCommand, type TestCommands } from './test-command.ts';

/**
 * The test commands of SWE-bench's harness by repository and version (swebench/harness/constants/python.py and
 * test_spec/python.py), since its rows do not contain them. The published images are already prepared. The steps before
 * each evaluation are reproduced here, as far as an account can that may only write the workspace and has no network.
 */

const pytest = 'pytest -rA';
const runTests = './tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1';

/**
 * Commands for images with an installed copy of the repository at the base commit, which the harness reinstalls before the
 * tests. Nothing can be installed here. Instead the workspace precedes the copy on Python's path, where an editable
 * installation would be, after Python's own modules.
 */
const workspaceFirst = [
  'PYTHONUSERBASE=$(mktemp -d) && export PYTHONUSERBASE',
  'temper_site=$(python -c \'import site; print(site.getusersitepackages())\') && mkdir -p "$temper_site"',
  'printf \'%s\\n\' "$PWD" "$PWD/src" >"$temper_site/workspace.pth"',
];

/** Commands that set a UTF-8 locale, from which Python takes its encoding. The harness generates it, which needs root. */
const utf8 = [
  "if locale -a 2>/dev/null | grep -qix 'en_US\\.utf-\\?8'; then LANG=en_US.UTF-8; else LANG=C.UTF-8; fi",
  'export LANG LC_ALL="$LANG" LANGUAGE=en_US:en PYTHONIOENCODING=utf8',
];

/** The change that the images contain, without which the tests do not name those that pass. It may run twice. */
const sphinxReports = "grep -q 'pytest -rA' tox.ini || sed -i 's/pytest/pytest -rA/' tox.ini";

interface VersionedCommand extends TestCommand {
  readonly versions: readonly string[];
}

const words = (text: string): readonly string[] => text.split(' ');
const python = { command: pytest, logParser: 'parse_log_pytest' } as const;
const pythonV2 = { command: pytest, logParser: 'parse_log_pytest_v2' } as const;
const django = { command: runTests, logParser: 'parse_log_django' } as const;

const repositories: Readonly<Record<string, readonly VersionedCommand[]>> = {
  'astropy/astropy': [
    {
      versions: words('0.1 0.2 0.3 0.4 1.1 1.2 1.3'),
      command: 'pytest -rA -vv -o console_output_style=classic --tb=no',
      logParser: 'parse_log_pytest_v2',
      compiled: true,
    },
    { versions: words('3.0 3.1 3.2 4.1 4.2 4.3 5.0 5.1 5.2 v5.3'), ...pythonV2, compiled: true },
  ],
  'django/django': [
    { versions: words('1.4 1.5 1.6'), ...django, before: workspaceFirst },
    { versions: words('1.7 1.8 1.10 1.11 2.0 2.1 2.2'), ...django, before: [...utf8, ...workspaceFirst] },
    {
      versions: ['1.9'],
      ...django,
      command: './tests/runtests.py --verbosity 2',
      before: [...utf8, ...workspaceFirst],
    },
    { versions: words('3.0 3.1 3.2'), ...django, before: utf8 },
    { versions: words('4.0 4.1 4.2 5.0 5.1 5.2'), ...django },
  ],
  // Versions before 3.0 are compiled into the image, not into the workspace.
  'matplotlib/matplotlib': [
    {
      versions: words('3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9'),
      command: pytest,
      logParser: 'parse_log_matplotlib',
      compiled: true,
    },
  ],
  'mwaskom/seaborn': [
    { versions: words('0.11 0.12 0.13 0.14'), command: 'pytest --no-header -rA', logParser: 'parse_log_seaborn' },
  ],
  'pallets/flask': [{ versions: words('2.0 2.1 2.2 2.3 3.0 3.1'), ...python }],
  'psf/requests': [
    {
      versions: words(
        '0.7 0.8 0.9 0.11 0.13 0.14 1.1 1.2 2.0 2.2 2.3 2.4 2.5 2.7 2.8 2.9 2.10 2.11 2.12 2.17 2.18 2.19 2.22 2.25 2.26 2.27 2.31 3.0',
      ),
      command: pytest,
      logParser: 'parse_log_pytest_options',
      before: workspaceFirst,
    },
  ],
  'pydata/xarray': [{ versions: words('0.12 0.18 0.19 0.20 2022.03 2022.06 2022.09 2023.07 2024.05'), ...python }],
  'pylint-dev/pylint': [
    {
      versions: words('2.8 2.9 2.10 2.11 2.13 2.14 2.15 2.16 2.17 3.0 3.1 3.2 3.3 4.0'),
      command: pytest,
      logParser: 'parse_log_pytest_options',
    },
  ],
  'pytest-dev/pytest': [
    {
      versions: words('4.4 4.5 4.6 5.0 5.1 5.2 5.3 5.4 6.0 6.2 6.3 7.0 7.1 7.2 7.4 8.0 8.1 8.2 8.3 8.4'),
      ...python,
    },
  ],
  'scikit-learn/scikit-learn': [{ versions: words('0.20 0.21 0.22 1.3 1.4 1.5 1.6'), ...pythonV2, compiled: true }],
  'sphinx-doc/sphinx': [
    {
      versions: words(
        '1.5 1.6 1.7 1.8 2.0 2.1 2.2 2.3 2.4 3.0 3.1 3.2 3.3 3.4 3.5 4.0 4.1 4.2 4.3 4.4 4.5 5.0 5.1 5.2 5.3 6.0 6.2 7.0 7.1 7.2 7.3 7.4 8.0 8.1',
      ),
      command: 'tox --current-env -epy39 -v --',
      logParser: 'parse_log_pytest_v2',
      checkedOut: [sphinxReports],
    },
  ],
  'sympy/sympy': [
    {
      versions: words('0.7 1.0 1.1 1.2 1.4 1.5 1.6 1.7 1.8 1.9 1.10 1.11 1.12 1.13 1.14'),
      command: "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
      logParser: 'parse_log_sympy',
    },
  ],
};

/** The test commands of SWE-bench's repositories. */
export const sweBenchCommands: TestCommands = {
  repositories: Object.keys(repositories),
  find: (repository, version) => {
    const commands = named(repositories, repository) ?? [];
    // If all versions use the same command, a row need not name its version.
    if (version === null) return commands.length === 1 ? (commands[0] ?? null) : null;
    return commands.find(({ versions }) => versions.includes(version)) ?? null;
  },
  parser: (repository) => named(repositories, repository)?.[0]?.logParser ?? null,
  versions: (repository) => named(repositories, repository)?.flatMap(({ versions }) => versions) ?? [],
};
