/** Parsers of the logs of test runners: the only entry to this kit, which imports nothing from the rest of temper. */
export { linesOf } from './lines.ts';
export type { LogParser, LogProblem, ParsedTests, TestStatus } from './log-parser.ts';
export { testStatuses } from './log-parser.ts';
export { findLogParser, type LogParserName, logParserNames, logParsers, runnerOf } from './parsers.ts';
export { mergeRuns } from './result-collector.ts';
