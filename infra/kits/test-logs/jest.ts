import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { linesOf, withoutDuration } from './lines.ts';
import { createTally, type LogParser } from './parsed-tests.ts';
import { createTitlePath } from './title-path.ts';

const marks: Readonly<Record<string, TestStatus>> = {
  '✓': 'PASSED',
  '√': 'PASSED',
  '✕': 'FAILED',
  '×': 'FAILED',
  '○': 'SKIPPED',
  '✎': 'SKIPPED',
};
const entry = /^( +)(?:([✓√✕×○✎]) )?(\S.*)$/s;
const detail = /^ {2}● (.+)$/s;
const separator = ' › ';

/** Ids as jest names a failure: `suite › test`. */
export const jest: LogParser = createParser((titles) => titles.join(separator));

/** SWE-bench's spelling: the test's own title alone (swebench/harness/log_parsers/javascript.py, `parse_log_jest`). */
export const jestTitles: LogParser = createParser((titles) => titles.at(-1) ?? '');

/**
 * jest with `--verbose`. After the line `PASS file` or `FAIL file` comes the tree of its tests, up to an empty line: ticks
 * that a test prints stand elsewhere. A failure counts there too; its details name the whole way to it, and are all that is
 * known of it without `--verbose`.
 */
function createParser(idOf: (titles: readonly string[]) => string): LogParser {
  return {
    parse: (log) => {
      const tally = createTally();
      const path = createTitlePath();
      let file = '';
      let inTree = false;
      for (const line of linesOf(log)) {
        const header = /^(?:PASS|FAIL) +(\S.*)$/s.exec(line)?.[1];
        const failure = detail.exec(line)?.[1];
        const [, indent = '', mark, text = ''] = entry.exec(line) ?? [];
        if (header !== undefined) {
          file = header;
          inTree = true;
          path.clear();
        } else if (failure !== undefined) {
          inTree = false;
          if (failure === 'Test suite failed to run') tally.problem('collection-error', file);
          else if (failure.includes(separator)) tally.record(idOf(failure.split(separator)), 'FAILED');
        } else if (indent === '') inTree = false;
        else {
          const title = titleIn(mark, text);
          const status = marks[mark ?? ''];
          const found = inTree ? tally.record : tally.against;
          if (status !== undefined) found(idOf(path.to(indent.length, title)), status);
          else if (inTree) path.open(indent.length, title);
        }
      }
      return tally.done();
    },
  };
}

function titleIn(mark: string | undefined, text: string): string {
  const title = withoutDuration(text.trimEnd());
  if (mark === '○') return title.replace(/^skipped /, '');
  return mark === '✎' ? title.replace(/^todo /, '') : title;
}
