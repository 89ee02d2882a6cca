import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';
import { vitest } from './vitest.ts';

const marks: Readonly<Record<string, TestStatus>> = { '✓': 'PASSED', '×': 'FAILED', '↓': 'SKIPPED' };
const entry = /^([✓×↓])\s(.+)$/s;
/** A number at the end, with or without a unit, or the word for a skip: SWE-bench takes each for a duration. */
const ending = /\s(?:\d+\s*m?s?|\[skipped\])$/;
/** Reads each line with a mark, in any of vitest's reports, as SWE-bench does (`parse_log_vitest`). */
export const vitestLines: LogParser = createParser((title) => title.replace(ending, ''));

/** Reads the same lines in the spelling of Multi-SWE-bench. */
export const vitestTitles: LogParser = createParser(withoutAmount);

/** The lines of the default report name a file, and its number of tests. Failures that vitest names in full count too. */
function createParser(spell: (title: string) => string): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      for (const line of linesOf(log)) {
        const [, mark = '', title = ''] = entry.exec(line.trim()) ?? [];
        const status = marks[mark];
        if (status !== undefined) collector.record(spell(title), status);
      }
      const full = vitest.parse(log);
      for (const [id, status] of [...full.tests, ...full.failedElsewhere]) collector.recordOutside(spell(id), status);
      for (const { kind, detail } of full.problems) collector.recordProblem(kind, detail);
      return collector.finish();
    },
  };
}

const isDigit = (character = ''): boolean => /^\d$/.test(character);

/** Removes an amount at the end, such as `12ms` or `1.5 s`: Multi-SWE-bench takes it for a duration, also in `utf8s`. */
function withoutAmount(title: string): string {
  const unit = ['ms', 's', 'm'].find((one) => title.endsWith(one));
  const text = unit === undefined ? '' : title.slice(0, -unit.length).trimEnd();
  const start = (end: number): number => {
    let at = end;
    while (at > 0 && isDigit(text[at - 1])) at -= 1;
    return at;
  };
  const last = start(text.length);
  if (last === text.length) return title;
  const whole = text[last - 1] === '.' ? start(last - 1) : last;
  return text.slice(0, whole).trimEnd() || title;
}
