import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';
import { positioned } from './title-path.ts';

const marks: Readonly<Record<string, TestStatus>> = {
  '✔': 'PASSED',
  '✘': 'FAILED',
  '↩': 'SKIPPED',
  '∅': 'SKIPPED',
  '⚠': 'PASSED',
  '☢': 'PASSED',
};
const entry = /^\s*([✔✘↩∅⚠☢])\s*(.*)$/s;
/** A result. Output without a line end may stand before it. */
const mark = / [✔✘↩∅⚠☢] /;
const heading = /^([\p{L}\p{N}_].+) \([^\s()]+\)$/su;
const list = /^There (?:was|were) \d+ (error|failure|skipped test|incomplete test)s?:$/;
const listed: Readonly<Record<string, TestStatus>> = {
  error: 'ERROR',
  failure: 'FAILED',
  'skipped test': 'SKIPPED',
  'incomplete test': 'SKIPPED',
};
const numbered = /^\d+\) (\S+::\S.*)$/s;

/**
 * Reads PHPUnit with `--testdox`: ids are `Class title > test title`, as SWE-bench has them. A warned or risky test passed:
 * the mark is about its code. Without testdox PHPUnit names failures alone, by `Namespace\Class::method`: every numbered
 * entry after the beginning of a list of failures is one, since a heading in between may have been printed by a test.
 */
export const phpunit: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    let group = '';
    let inList: TestStatus | undefined;
    for (const line of linesOf(log)) {
      const [, found = '', title = ''] = entry.exec(line) ?? entry.exec(afterText(line)) ?? [];
      const status = marks[found];
      if (status !== undefined)
        collector.record(...positioned([group, withoutTime(title)], withoutTime(title), status));
      group = heading.exec(line)?.[1] ?? group;
      const begun = listed[list.exec(line)?.[1] ?? ''];
      if (begun !== undefined && (inList === undefined || begun !== 'SKIPPED')) inList = begun;
      const failed = numbered.exec(line)?.[1];
      if (failed !== undefined && inList !== undefined) collector.record(failed, inList);
      if (line.startsWith('PHP Fatal error: ') || line.startsWith('Fatal error: '))
        collector.recordProblem('crashed', line);
    }
    return collector.finish();
  },
};

const withoutTime = (title: string): string =>
  title
    .trimEnd()
    .replace(/ \[ *\d+(?:\.\d+)? *m?s *\]$/i, '')
    .trimEnd();

/** Returns a line from its mark on. A frame's line is part of the message of a failure. */
const afterText = (line: string): string =>
  /^\s*[│┐├╵┴]/.test(line) ? '' : line.slice(Math.max(0, line.search(mark)));
