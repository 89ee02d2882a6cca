import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { linesOf } from './lines.ts';
import { createTally, type LogParser } from './parsed-tests.ts';
import { placed } from './title-path.ts';

const marks: Readonly<Record<string, TestStatus>> = {
  '✔': 'PASSED',
  '✘': 'FAILED',
  '↩': 'SKIPPED',
  '∅': 'SKIPPED',
  '⚠': 'PASSED',
  '☢': 'PASSED',
};
const entry = /^ ([✔✘↩∅⚠☢]) (.+)$/s;
const heading = /^(\S.*) \([\w\\]+\)$/s;
const list = /^There (?:was|were) \d+ (error|failure|skipped test|incomplete test)s?:$/;
const listed: Readonly<Record<string, TestStatus>> = {
  error: 'ERROR',
  failure: 'FAILED',
  'skipped test': 'SKIPPED',
  'incomplete test': 'SKIPPED',
};
const numbered = /^\d+\) (\S+::\S.*)$/s;

/**
 * PHPUnit with `--testdox`: ids are `Class title > test title`, as SWE-bench has them. A warned or a risky test passed: the
 * mark is about its code. Without testdox failures alone are named, by `Namespace\Class::method`: whatever is numbered after a
 * list of them has begun is one, since a heading in between may be printed.
 */
export const phpunit: LogParser = {
  parse: (log) => {
    const tally = createTally();
    let group = '';
    let inList: TestStatus | undefined;
    for (const line of linesOf(log)) {
      const [, mark = '', title = ''] = entry.exec(line) ?? [];
      const status = marks[mark];
      if (status !== undefined) tally.record(...placed([group, withoutTime(title)], withoutTime(title), status));
      group = heading.exec(line)?.[1] ?? group;
      const begun = listed[list.exec(line)?.[1] ?? ''];
      if (begun !== undefined && (inList === undefined || begun !== 'SKIPPED')) inList = begun;
      const failed = numbered.exec(line)?.[1];
      if (failed !== undefined && inList !== undefined) tally.record(failed, inList);
      if (line.startsWith('PHP Fatal error: ') || line.startsWith('Fatal error: ')) tally.problem('crashed', line);
    }
    return tally.done();
  },
};

const withoutTime = (title: string): string => title.trimEnd().replace(/ \[\d+(?:\.\d+)? ms\]$/, '');
