import { headingIn, linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { idBeforeReason } from './pytest-id.ts';
import { createResultCollector, type ResultCollector } from './result-collector.ts';

type Report = readonly [id: string, status: TestStatus];

const summaryLine = /^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*)$/s;
const quietEnd = /^(?:no tests ran|\d+ [a-z]+)(?:, \d+ [a-z]+)* in \d/;
const statuses: readonly TestStatus[] = ['PASSED', 'FAILED', 'ERROR', 'SKIPPED', 'XFAIL', 'XPASS'];
const withReason: readonly TestStatus[] = ['SKIPPED', 'XFAIL', 'XPASS'];

/**
 * Reads one run of pytest, with `-rA` or `-v`.
 *
 * The output of tests comes before the short test summary. So only the last summary counts, up to pytest's closing line,
 * and nothing outside it except skips, which it does not name. Without passes in the summary (no `-rA`) verbose lines count
 * too, up to the first report of captured output. A failure counts anywhere, so a forged summary after pytest's own adds
 * passes but revokes no failure.
 */
export const pytest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    const progress: Report[] = [];
    let summary: string[] = [];
    let section: 'progress' | 'summary' | 'other' = 'progress';
    for (const line of linesOf(log)) {
      const heading = headingIn(line, '=');
      const report = verboseReport(line);
      for (const one of [report, summaryReport(line)]) if (one?.[0].includes('::')) collector.recordOutside(...one);
      if (heading === 'short test summary info') {
        section = 'summary';
        summary = [];
      } else if (heading !== null) {
        section = section === 'progress' && heading === 'test session starts' ? 'progress' : 'other';
      } else if (section === 'summary') {
        if (quietEnd.test(line)) section = 'other';
        else summary.push(line);
      } else if (section === 'progress' && report !== null) progress.push(report);
      if (line.startsWith('INTERNALERROR> ')) collector.recordProblem('crashed', line);
    }
    const passesListed = readSummary(summary, collector);
    for (const [id, status] of progress) if (!passesListed || status === 'SKIPPED') collector.record(id, status);
    return collector.finish();
  },
};

/** Whether the summary names the tests that passed, which makes it complete. */
function readSummary(lines: readonly string[], collector: ResultCollector): boolean {
  let passesListed = false;
  for (const line of lines) {
    const interrupted = headingIn(line, '!');
    if (interrupted !== null) collector.recordProblem('crashed', interrupted);
    const report = summaryReport(line);
    if (report === null) continue;
    const [id, status] = report;
    if (id.includes('::')) collector.record(id, status);
    else if (status === 'ERROR') collector.recordProblem('collection-error', line.slice('ERROR '.length));
    passesListed ||= status === 'PASSED';
  }
  return passesListed;
}

/** Reads `STATUS id - reason`; the id is a file if that could not be collected. */
function summaryReport(line: string): Report | null {
  const [, word, rest = ''] = summaryLine.exec(line) ?? [];
  const status = statuses.find((one) => one === word);
  // A passed test has no reason: all of the rest is its id.
  return status === undefined ? null : [status === 'PASSED' ? rest : idBeforeReason(rest), status];
}

/** Reads `id STATUS (reason) [ 50%]`, or `[gw0] [ 50%] STATUS id` of pytest-xdist. */
function verboseReport(line: string): Report | null {
  const [, word, worked = ''] = /^\[gw\d+\] \[ *\d+%\] ([A-Z]+) (\S.*)$/s.exec(line) ?? [];
  const status = statuses.find((one) => one === word);
  if (status !== undefined) return [worked, status];
  const text = (line.endsWith('%]') ? line.slice(0, line.lastIndexOf('[')) : line).trimEnd();
  const plain = statuses.find((one) => text.endsWith(` ${one}`));
  if (plain !== undefined) return node(text.slice(0, -plain.length), plain);
  const reasoned = withReason.find((one) => text.includes(` ${one} (`));
  return reasoned === undefined ? null : node(text.slice(0, text.indexOf(` ${reasoned} (`)), reasoned);
}

function node(text: string, status: TestStatus): Report | null {
  return text.includes('::') && !text.startsWith(' ') ? [text.trim(), status] : null;
}
