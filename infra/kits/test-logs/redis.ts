import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const statuses: Readonly<Record<string, TestStatus>> = {
  ok: 'PASSED',
  err: 'FAILED',
  skip: 'SKIPPED',
  ignore: 'SKIPPED',
};
const result = /^\[(ok|err|skip|ignore)\]: (\S.*)$/s;
const exception = '[exception]: ';
/** The time of a test, and the file that a failure names after its title. */
const duration = / \(\d+ ?m?s\)$/;
const file = / in \S+$/;

/** Reads the test suite of Redis and of its forks, whose ids are titles (SWE-bench's `parse_log_redis`). */
export const redis: LogParser = createParser((title) => title.replace(duration, ''));

/** Reads ids in the spelling of Multi-SWE-bench: a title that ends with `)` ends before its first parenthesis. */
export const redisPlainTitles: LogParser = createParser((title) => {
  const start = title.indexOf(' (', 1);
  return start !== -1 && title.endsWith(')') ? title.slice(0, start) : title;
});

function createParser(idOf: (title: string) => string): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      for (const line of linesOf(log)) {
        const text = line.trim();
        const [, word = '', rest = ''] = result.exec(text) ?? [];
        const status = statuses[word];
        if (status === 'FAILED') collector.record(idOf(rest.replace(file, '')), status);
        else if (status !== undefined) collector.record(idOf(rest), status);
        else if (text.startsWith(exception)) collector.recordProblem('crashed', text);
      }
      return collector.finish();
    },
  };
}
