import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Resolution } from '../../../workflows/contracts/resolution.ts';
import { findLogParser, mergeRuns, type ParsedTests } from '../../kits/test-logs/index.ts';
import { evalSection, marksWith } from './eval-section.ts';
import { findRequired, type RequiredTests, refused, resolve } from './resolve.ts';

/** The criteria by which a log is judged. All of them come from outside the sandbox. */
export interface LogCase extends RequiredTests {
  readonly logParser: string;
  readonly nonce: string;
  /** The exit code of the process that wrote the log; its end mark must name the same. */
  readonly exitCode: number;
}

export interface Judgement {
  readonly resolution: Resolution;
  readonly passed: number;
  readonly failed: number;
  /** The status of each test, as JSON; null if no test could be read. */
  readonly results: string | null;
}

/** Limit of the names, together, of stored tests that the task does not require. */
const otherCharacters = 1024 * 1024;
const good = ['PASSED', 'XFAIL'];
const bad = ['FAILED', 'ERROR', 'XPASS'];

/** Judges the whole log of `runLoggedTests`. Pure; takes time linear in the log's length. */
export function judgeLog(log: string, { nonce, logParser, ...required }: LogCase): Judgement {
  const { exitCode } = required;
  const section = evalSection(log, marksWith(nonce, exitCode));
  if (!section.found) return unreadable(required, section.reason);
  const parser = findLogParser(logParser);
  if (parser === null) throw new TemperFailure('UnsupportedTask', `expected a log parser, got ${logParser}`);
  const parsed = mergeRuns(section.logs.map((one) => parser.parse(one)));
  const count = (statuses: readonly string[]): number =>
    [...parsed.tests.values()].filter((status) => statuses.includes(status)).length;
  return {
    resolution: resolve(required, parsed, { exitCode }),
    passed: count(good),
    failed: count(bad),
    results: resultsOf(required, parsed),
  };
}

/** Returns the judgement of tests whose log cannot be read. */
export const unreadable = (required: RequiredTests, reason: string): Judgement => ({
  resolution: refused(required, reason),
  passed: 0,
  failed: 0,
  results: null,
});

function resultsOf(required: RequiredTests, parsed: ParsedTests): string {
  const found = findRequired(required, parsed);
  const requiredIds = new Set(found.map(({ id }) => id.trim()));
  let characters = 0;
  const others = [...parsed.tests].filter(([id]) => {
    if (requiredIds.has(id)) return false;
    characters += id.length;
    return characters <= otherCharacters;
  });
  return JSON.stringify({ required: found, others: Object.fromEntries(others), problems: parsed.problems });
}
