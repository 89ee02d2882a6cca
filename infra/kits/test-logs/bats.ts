import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { linesOf } from './lines.ts';
import { createTally, type LogParser, type ParsedTests, withFailures } from './parsed-tests.ts';
import { parseTap } from './tap.ts';

const marks: Readonly<Record<string, TestStatus>> = { '✓': 'PASSED', '✗': 'FAILED', '-': 'SKIPPED' };
const cursorToStart = '\u001b[1G';
const pretty = /^ ([✓✗-]) (.+)$/s;

/** bats: TAP, which it writes where no terminal is, or its pretty form. Failures count in either. */
export const bats: LogParser = {
  parse: (log) => {
    const asTap = parseTap(log, (title) => title.replace(/ in \d+(?:ms|sec)$/, ''));
    return isTap(log) ? withFailures(asTap, drawn(log)) : withFailures(drawn(log), asTap);
  },
};

function isTap(log: string): boolean {
  for (const line of linesOf(log)) if (/^1\.\.\d+/.test(line)) return true;
  return false;
}

/**
 * What a test says is indented by three blanks or more, its mark by one. The name of a test that runs is written over by its
 * result: there the line begins anew.
 */
function drawn(log: string): ParsedTests {
  const tally = createTally();
  for (const line of linesOf(log.replaceAll(cursorToStart, '\n'))) {
    const [, mark = '', title = ''] = pretty.exec(line) ?? [];
    const status = marks[mark];
    if (status !== undefined)
      tally.record(
        status === 'SKIPPED' ? (title.split(' (skipped', 1)[0] ?? '') : title.replace(/ \[\d+\]$/, ''),
        status,
      );
  }
  return tally.done();
}
