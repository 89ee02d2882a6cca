import type { Exposure } from '../../../workflows/contracts/verdict.ts';
import type { LogParserName } from './index.ts';

/**
 * By runner, how far the code under test can get. All but bats load it into the process that says what a test came to;
 * node's runner has a process for each file of tests, and believes it.
 */
export const exposures: Readonly<Record<LogParserName, Exposure>> = {
  bats: 'same-account',
  cargo: 'in-process',
  django: 'in-process',
  'go-json': 'in-process',
  'go-json-names': 'in-process',
  'go-names': 'in-process',
  'go-text': 'in-process',
  jest: 'in-process',
  'jest-titles': 'in-process',
  junit: 'in-process',
  mocha: 'in-process',
  'node-spec': 'in-process',
  phpunit: 'in-process',
  pytest: 'in-process',
  'pytest-matplotlib': 'in-process',
  'pytest-options': 'in-process',
  sympy: 'in-process',
  tap: 'in-process',
  unittest: 'in-process',
  vitest: 'in-process',
};
