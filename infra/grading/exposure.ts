import type { Exposure } from '../../workflows/contracts/verdict.ts';
import { type LogParserName, runnerOf } from '../kits/test-logs/index.ts';

/**
 * The exposure of each runner. All but bats, CTest, `make check` and Redis' own load the code under test into the process that reports
 * the results; node's runner has a process for each file of tests, and trusts that process's report.
 */
const exposures: Readonly<Record<LogParserName, Exposure>> = {
  automake: 'same-account',
  bats: 'same-account',
  cargo: 'in-process',
  catch2: 'in-process',
  ctest: 'same-account',
  'ctest-lower': 'same-account',
  django: 'in-process',
  'go-json': 'in-process',
  'go-json-names': 'in-process',
  'go-names': 'in-process',
  'go-parents': 'in-process',
  'go-text': 'in-process',
  googletest: 'in-process',
  gradle: 'in-process',
  'gradle-lines': 'in-process',
  'gradle-tasks': 'in-process',
  jest: 'in-process',
  'jest-files': 'in-process',
  'jest-plain-files': 'in-process',
  'jest-titles': 'in-process',
  junit: 'in-process',
  maven: 'in-process',
  'maven-builds': 'in-process',
  mocha: 'in-process',
  'mocha-json': 'in-process',
  'mocha-json-files': 'in-process',
  'mocha-titles': 'in-process',
  'node-spec': 'in-process',
  phpunit: 'in-process',
  ponytest: 'in-process',
  pytest: 'in-process',
  'pytest-matplotlib': 'in-process',
  'pytest-options': 'in-process',
  redis: 'same-account',
  'redis-plain-titles': 'same-account',
  rspec: 'in-process',
  sympy: 'in-process',
  tap: 'in-process',
  'tap-lines': 'in-process',
  unittest: 'in-process',
  vitest: 'in-process',
  'vitest-lines': 'in-process',
  'vitest-titles': 'in-process',
  'workspace-titles': 'in-process',
};

/** Returns the exposure of tests whose log this parser reads; null if there is no parser of that name. */
export function exposureOf(logParser: string): Exposure | null {
  const runner = runnerOf(logParser);
  return runner === null ? null : exposures[runner];
}
