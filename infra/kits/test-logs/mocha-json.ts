import { z } from 'zod';
import type { LogParser } from './log-parser.ts';
import { mochaTitles } from './mocha.ts';
import { createResultCollector } from './result-collector.ts';

/** The beginning of a report, whose first line may follow text that has no line end. Only a report's last line starts with a brace. */
const start = /\{\r?\n {2}"stats": \{/g;
const end = /\n\}/;

const listed = z.array(z.object({ fullTitle: z.string(), file: z.string().default('') }));
const report = z.object({ passes: listed, failures: listed, pending: listed });

type ListedTest = z.output<typeof listed>[number];

/**
 * Reads the reports of mocha's `json` reporter, which may stand anywhere in the log. Ids are full titles. A log without a report
 * is read as mocha's `spec` report by titles alone: Multi-SWE-bench does so for some rows of Express.
 */
export const mochaJson: LogParser = {
  parse: (log) => (log.search(start) === -1 ? mochaTitles : reports(({ fullTitle }) => fullTitle)).parse(log),
};

/** Reads ids with the test's file before them: `/home/repo/a.test.js:suite title`. */
export const mochaJsonFiles: LogParser = reports(({ file, fullTitle }) => `${file}:${fullTitle}`);

function reports(idOf: (test: ListedTest) => string): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      for (const text of textsIn(log)) {
        const read = report.safeParse(parseJson(text));
        if (!read.success) {
          collector.recordProblem('malformed', text);
          continue;
        }
        for (const test of read.data.passes) collector.record(idOf(test), 'PASSED');
        for (const test of read.data.pending) collector.record(idOf(test), 'SKIPPED');
        for (const test of read.data.failures) collector.record(idOf(test), 'FAILED');
      }
      return collector.finish();
    },
  };
}

/** Yields the texts that may be reports: each ends before the next one starts, however many a log has. */
function* textsIn(log: string): Generator<string> {
  const starts = [...log.matchAll(start)].map(({ index }) => index);
  for (const [place, from] of starts.entries()) {
    const text = log.slice(from, starts[place + 1]);
    const last = text.search(end);
    yield last === -1 ? text : `${text.slice(0, last)}\n}`;
  }
}

/** Returns null for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
