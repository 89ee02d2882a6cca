import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

/** A result: ` 3/12 Test  #7: name ......***Failed    0.01 sec`. */
const result = /^ *\d+\/\d+ +Test +#\d+: (.*?) \.+ *(?:\*\*\* *)?(Passed|[A-Z][A-Za-z]*(?: Run)?(?: \(Disabled\))?)/s;
const statuses: Readonly<Record<string, TestStatus>> = {
  Passed: 'PASSED',
  Skipped: 'SKIPPED',
  'Not Run (Disabled)': 'SKIPPED',
};
/** An entry of the list at the end: `\t  7 - name (Failed)`. */
const listed = /^\t *\d+ - (.+) \(([^()]+)\)(?: .*)?$/s;
const totals = /^\d+% tests passed, \d+ tests? failed out of (\d+)/;

/**
 * Reads CTest, with or without the output of tests. Ids are CTest's names of tests. A test that failed is named again in the
 * list at the end; everything that is neither a pass nor a skip is a failure. CTest counts disabled tests in no total.
 */
export const ctest: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let reported = new Set<string>();
    let inFailed = false;
    for (const line of linesOf(log)) {
      const [, name = '', word = ''] = result.exec(line) ?? [];
      if (name !== '') {
        if (word !== 'Not Run (Disabled)') reported.add(name);
        collector.record(name, statuses[word] ?? 'FAILED');
      }
      inFailed = line === 'The following tests FAILED:' || (inFailed && line.startsWith('\t'));
      const [, failed, why = ''] = (inFailed ? listed.exec(line) : null) ?? [];
      if (failed !== undefined && why !== 'Disabled') collector.recordOutside(failed, 'FAILED');
      const total = totals.exec(line)?.[1];
      if (total === undefined) continue;
      if (Number(total) !== reported.size)
        collector.recordProblem('miscounted', `${total} tests were to run, ${reported.size} reported`);
      reported = new Set();
    }
    return collector.finish();
  },
};

/** A check by CMake: `-- Performing Test HAVE_X - Success`. */
const check = /^-- performing test (.+) - (success|failed|skipped)$/s;
const checked: Readonly<Record<string, TestStatus>> = { success: 'PASSED', failed: 'FAILED', skipped: 'SKIPPED' };

/** Reads ids in small letters, and CMake's checks as tests, as Multi-SWE-bench does for Catch2. */
export const ctestLower: LogParser = {
  parse: (log) => {
    const { tests, failedElsewhere, problems } = ctest.parse(log);
    const collector = createResultCollector();
    for (const [id, status] of tests) collector.record(id.toLowerCase(), status);
    for (const [id, status] of failedElsewhere) collector.recordOutside(id.toLowerCase(), status);
    for (const line of linesOf(log)) {
      const [, name = '', word = ''] = check.exec(line.trim().toLowerCase()) ?? [];
      const status = checked[word];
      if (status !== undefined) collector.record(name, status);
    }
    return { ...collector.finish(), problems };
  },
};
