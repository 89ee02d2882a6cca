import type { Exposure } from '../../../workflows/contracts/verdict.ts';
import { exposures } from './exposure.ts';
import { type LogParserName, logParsers } from './index.ts';
import type { LogParser } from './parsed-tests.ts';

/**
 * What data sets call their parsers, by ours. Only those are here whose ids ours spells as theirs does: with other ids a
 * test that passed would be missing. The names of SWE-bench are also those of SWE-Gym, SWE-smith and SWE-rebench;
 * Multi-SWE-bench has a parser per repository, of which those for Go and Rust are the runners' own forms.
 */
const published: Readonly<Record<string, LogParserName>> = {
  parse_log_pytest: 'pytest',
  parse_log_pytest_v2: 'pytest',
  parse_log_pytest_v3: 'pytest',
  parse_log_seaborn: 'pytest',
  parse_log_pytest_options: 'pytest-options',
  parse_log_matplotlib: 'pytest-matplotlib',
  parse_log_django: 'django',
  parse_log_sympy: 'sympy',
  parse_log_gotest: 'go-names',
  parse_log_cargo: 'cargo',
  parse_log_jest: 'jest-titles',
  parse_log_vitest: 'vitest',
  parse_log_phpunit: 'phpunit',
  'cli/cli': 'go-names',
  'grpc/grpc-go': 'go-names',
  'zeromicro/go-zero': 'go-names',
  'clap-rs/clap': 'cargo',
  'nushell/nushell': 'cargo',
  'tokio-rs/tokio': 'cargo',
};

/** The parser of a name of ours or of a data set's; null where there is none. */
export function logParserNamed(name: string): LogParser | null {
  const ours = oursFor(name);
  return ours === null ? null : logParsers[ours];
}

/** How far the code under test gets where this parser reads the log; null where there is none of that name. */
export function exposureOf(name: string): Exposure | null {
  const ours = oursFor(name);
  return ours === null ? null : exposures[ours];
}

function oursFor(name: string): LogParserName | null {
  if (isOurs(name)) return name;
  return Object.hasOwn(published, name) ? (published[name] ?? null) : null;
}

const isOurs = (name: string): name is LogParserName => Object.hasOwn(logParsers, name);

/** Every name that is known. */
export const logParserNames: readonly string[] = [...Object.keys(logParsers), ...Object.keys(published)];
