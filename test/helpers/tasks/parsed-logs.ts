import { type LogParserName, logParsers } from '../../../infra/kits/test-logs/index.ts';

/** What a parser finds in a log, as plain data. */
export function testsIn(runner: LogParserName, log: string): Record<string, string> {
  return Object.fromEntries(logParsers[runner].parse(log).tests);
}

export function problemsIn(runner: LogParserName, log: string): string[] {
  return logParsers[runner].parse(log).problems.map(({ kind, detail }) => `${kind}: ${detail}`);
}
