import { headingIn, linesOf } from './lines.ts';
import type { LogParser } from './log-parser.ts';
import { nodeAtStart } from './pytest-id.ts';
import {
  isOfWorker,
  type PytestReport,
  parentsOfFailedPart,
  statusAtEnd,
  summaryReport,
  verboseReport,
} from './pytest-lines.ts';
import { createResultCollector, type ResultCollector } from './result-collector.ts';

const quietEnd = /^(?:no tests ran|\d+ [a-z]+)(?:, \d+ [a-z]+)* in \d/;

/**
 * Reads one run of pytest, with `-rA` or `-v`. A failed sub-test fails its test.
 *
 * The output of tests comes before the short test summary. So only the last summary counts, up to pytest's closing line,
 * and nothing outside it except skips, which it does not name. Without passes in the summary (no `-rA`) verbose lines count
 * too, up to the first report of captured output. A failure counts anywhere, so a forged summary after pytest's own adds
 * passes but revokes no failure.
 */
export const pytest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    const progress = createProgress();
    let summary: string[] = [];
    let section: 'progress' | 'summary' | 'other' = 'progress';
    for (const line of linesOf(log)) {
      const heading = headingIn(line, '=');
      for (const one of [verboseReport(line), summaryReport(line)])
        if (one?.[0].includes('::')) collector.recordOutside(...one);
      for (const id of parentsOfFailedPart(line)) collector.recordOutside(id, 'FAILED');
      if (heading === 'short test summary info') {
        section = 'summary';
        summary = [];
      } else if (heading !== null) {
        section = section === 'progress' && heading === 'test session starts' ? 'progress' : 'other';
      } else if (section === 'summary') {
        if (quietEnd.test(line)) section = 'other';
        else summary.push(line);
      } else if (section === 'progress') progress.read(line);
      if (line.startsWith('INTERNALERROR> ')) collector.recordProblem('crashed', line);
    }
    const passesListed = readSummary(summary, collector);
    for (const [id, status] of progress.reports) {
      if (!passesListed || status === 'SKIPPED') collector.record(id, status);
    }
    const unfinished = section === 'progress' ? progress.running() : null;
    if (unfinished !== null) {
      collector.record(unfinished, 'ERROR');
      collector.recordProblem('crashed', `pytest ended within ${unfinished}`);
    }
    return collector.finish();
  },
};

/**
 * Reads the lines of `-v`. A test's id is written before the test runs. With `-s`, and with a live log, its status may follow
 * on a later line. Workers of pytest-xdist write each id twice, and whole lines only.
 */
function createProgress(): {
  readonly read: (line: string) => void;
  readonly reports: readonly PytestReport[];
  readonly running: () => string | null;
} {
  const reports: PytestReport[] = [];
  let running: string | null = null;
  let hasWorkers = false;
  return {
    read: (line) => {
      hasWorkers ||= isOfWorker(line);
      const report = verboseReport(line);
      const late = running === null || hasWorkers ? null : statusAtEnd(line);
      const begun = /^[^\s[]/.test(line) ? nodeAtStart(line) : '';
      if (report !== null) reports.push(report);
      else if (running !== null && late !== null) reports.push([running, late[1]]);
      if (report !== null || late !== null) running = null;
      else if (/^[^\s:]+\.\w+::\S/.test(begun)) running = begun.trim();
    },
    reports,
    running: () => (hasWorkers ? null : running),
  };
}

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
