import { named, type TestCommand, type TestCommands } from './test-command.ts';

const pytest: TestCommand = { command: 'pytest -rA', logParser: 'parse_log_pytest' };

const commands: Readonly<Record<string, TestCommand>> = {
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

/** The test commands of SWE-Gym's repositories. */
export const sweGymCommands: TestCommands = {
  repositories: Object.keys(commands),
  find: (repository) => named(commands, repository) ?? null,
  parser: (repository) => named(commands, repository)?.logParser ?? null,
  versions: () => [],
};
