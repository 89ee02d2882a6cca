import { bats } from './bats.ts';
import { cargo } from './cargo.ts';
import { goJson, goJsonNames } from './go-json.ts';
import { goText, goTextNames } from './go-text.ts';
import { jest, jestTitles } from './jest.ts';
import { junit } from './junit.ts';
import { mocha } from './mocha.ts';
import { nodeSpec } from './node-spec.ts';
import { type LogParser, respelt } from './parsed-tests.ts';
import { phpunit } from './phpunit.ts';
import { pytest } from './pytest.ts';
import { withMouseButtonNumbers, withShortPaths } from './pytest-id.ts';
import { sympy } from './sympy.ts';
import { tap } from './tap.ts';
import { django, unittest } from './unittest.ts';
import { vitest } from './vitest.ts';

/**
 * The parsers of test logs, by the runner's name. Where a data set spells ids in a way of its own, the runner has a second
 * entry for it: `pytest-options`, `pytest-matplotlib`, `django`, `jest-titles` and `go-names` are SWE-bench's.
 */
export const logParsers = {
  bats,
  cargo,
  django,
  'go-json': goJson,
  'go-json-names': goJsonNames,
  'go-names': goTextNames,
  'go-text': goText,
  jest,
  'jest-titles': jestTitles,
  junit,
  mocha,
  'node-spec': nodeSpec,
  phpunit,
  pytest,
  'pytest-matplotlib': respelt(pytest, withMouseButtonNumbers),
  'pytest-options': respelt(pytest, withShortPaths),
  sympy,
  tap,
  unittest,
  vitest,
} as const satisfies Record<string, LogParser>;

export type LogParserName = keyof typeof logParsers;
