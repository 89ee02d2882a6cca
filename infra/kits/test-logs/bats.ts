import { linesOf } from './lines.ts';
import type { LogParser, ParsedTests, TestStatus } from './log-parser.ts';
import { createResultCollector, withFailures } from './result-collector.ts';
import { parseTap } from './tap.ts';

const marks: Readonly<Record<string, TestStatus>> = { '✓': 'PASSED', '✗': 'FAILED', '-': 'SKIPPED' };
const cursorToStart = '\u001b[1G';
const pretty = /^ ([✓✗-]) (.+)$/s;

/** Reads bats: TAP, which it writes without a terminal, or its pretty format. Failures count in either. */
export const bats: LogParser = {
  parse: (log) => {
    const asTap = parseTap(log, (title) => title.replace(/ in \d+(?:ms|sec)$/, ''));
    const asPretty = parsePretty(log);
    return isTap(log) ? withFailures(asTap, asPretty) : withFailures(asPretty, asTap);
  },
};

function isTap(log: string): boolean {
  for (const line of linesOf(log)) if (/^1\.\.\d+/.test(line)) return true;
  return false;
}

/**
 * Reads the pretty format. A test's output is indented by three blanks or more, its mark by one. The result of a running
 * test overwrites its name: there a new line begins.
 */
function parsePretty(log: string): ParsedTests {
  const collector = createResultCollector();
  for (const line of linesOf(log.replaceAll(cursorToStart, '\n'))) {
    const [, mark = '', title = ''] = pretty.exec(line) ?? [];
    const status = marks[mark];
    if (status !== undefined)
      collector.record(
        status === 'SKIPPED' ? (title.split(' (skipped', 1)[0] ?? '') : title.replace(/ \[\d+\]$/, ''),
        status,
      );
  }
  return collector.finish();
}
