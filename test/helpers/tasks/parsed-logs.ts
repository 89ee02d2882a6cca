import { type LogParserName, logParsers } from '../../../infra/kits/test-logs/index.ts';

/** Returns the statuses that a parser finds in a log, by test. */
export function testsIn(runner: LogParserName, log: string): Record<string, string> {
  return Object.fromEntries(logParsers[runner].parse(log).tests);
}

/** Returns the problems that a parser finds in a log, each as `kind: detail`. */
export function problemsIn(runner: LogParserName, log: string): string[] {
  return logParsers[runner].parse(log).problems.map(({ kind, detail }) => `${kind}: ${detail}`);
}
