import { linesOf } from './lines.ts';
import type { LogParser } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

const result = /^(ok|not ok) \d+ (.+)$/s;

/**
 * Reads TAP line by line, as SWE-bench does (`parse_log_tap`): the id is all that follows the number, with the dash and the
 * directive, wherever the line stands. A failure inside of a sub-test is one more test.
 */
export const tapLines: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    for (const line of linesOf(log)) {
      const text = line.trim();
      const [, word, title = ''] = result.exec(text) ?? [];
      if (word !== undefined) collector.record(title, word === 'ok' ? 'PASSED' : 'FAILED');
      else if (text.startsWith('Bail out!')) collector.recordProblem('crashed', text);
    }
    return collector.finish();
  },
};
