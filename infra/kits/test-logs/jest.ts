import { linesOf, withoutDuration, withoutNote } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';
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
/** The name of a test file, perhaps after that of its project. */
const file = /^(?:\S+ )?\S+\.[cm]?[jt]sx?$/;

/** Reads ids as jest names a failure: `suite › test`. */
export const jest: LogParser = createJestParser((titles) => titles.join(separator));

/** An amount at the end of a title, such as `(3 items)`: Multi-SWE-bench takes it for a duration. */
const amount = /^ \(\d*\.?\d+\s*\w+\)$/;

/**
 * Reads ids in the spelling of Multi-SWE-bench: the file, which is a test too, and `file:title`, without a duration or another
 * amount at its end. `jestPlainFiles` cuts
 * everything in parentheses off the end of a title, as some of its parsers do.
 */
export const jestFiles: LogParser = createJestParser(
  (titles, file) => `${file}:${titles.at(-1) ?? ''}`,
  true,
  (title) => withoutNote(title, amount),
);
export const jestPlainFiles: LogParser = createJestParser(
  (titles, file) => `${file}:${withoutParentheses(titles.at(-1) ?? '')}`,
  true,
);

/** Reads ids in SWE-bench's spelling, the test's title alone (swebench/harness/log_parsers/javascript.py, `parse_log_jest`). */
export const jestTitles: LogParser = createJestParser((titles) => titles.at(-1) ?? '');

/**
 * Reads jest with `--verbose`. The tree of a file's tests follows the line `PASS file` or `FAIL file`, up to an empty line.
 * Ticks elsewhere were printed by a test; crosses count anywhere. The details of a failure name the full path of titles to
 * it, and are its only trace without `--verbose`.
 */
export function createJestParser(
  idOf: (titles: readonly string[], file: string) => string,
  namesFiles = false,
  titleOf: (text: string) => string = withoutDuration,
): LogParser {
  return {
    parse: (log) => {
      const collector = createResultCollector();
      const path = createTitlePath();
      let file = '';
      let inTree = false;
      for (const line of linesOf(log)) {
        const [outcome, header] = headerIn(line) ?? [];
        const failure = detail.exec(line)?.[1];
        const [, indent = '', mark, text = ''] = entry.exec(line) ?? [];
        if (header !== undefined) {
          file = withoutDuration(header.trimEnd());
          if (namesFiles) collector.record(file, outcome === 'PASS' ? 'PASSED' : 'FAILED');
          inTree = true;
          path.clear();
        } else if (failure !== undefined) {
          inTree = false;
          if (failure === 'Test suite failed to run') collector.recordProblem('collection-error', file);
          else if (failure.includes(separator)) collector.record(idOf(failure.split(separator), file), 'FAILED');
        } else if (indent === '') inTree = false;
        else {
          const title = titleIn(mark, titleOf(text.trimEnd()));
          const status = marks[mark ?? ''];
          const found = inTree ? collector.record : collector.recordOutside;
          if (status !== undefined) found(idOf(path.to(indent.length, title), file), status);
          else if (inTree) path.open(indent.length, title);
        }
      }
      return collector.finish();
    },
  };
}

/** Reads `PASS file` or `FAIL file`. Output that tests write without a line end stands before it. */
function headerIn(line: string): readonly [outcome: string, file: string] | null {
  const [, outcome, header] = /^(PASS|FAIL) +(\S.*)$/s.exec(line) ?? [];
  if (outcome !== undefined && header !== undefined) return [outcome, header];
  const at = Math.max(line.lastIndexOf('PASS '), line.lastIndexOf('FAIL '));
  const text = line.slice(at + 'PASS '.length).trimEnd();
  return at > 0 && file.test(withoutDuration(text)) ? [line.slice(at, at + 'PASS'.length), text] : null;
}

function titleIn(mark: string | undefined, title: string): string {
  if (mark === '○') return title.replace(/^skipped /, '');
  return mark === '✎' ? title.replace(/^todo /, '') : title;
}

function withoutParentheses(title: string): string {
  const start = title.search(/\s\(/);
  const before = title.slice(0, Math.max(0, start)).trimEnd();
  return before !== '' && title.endsWith(')') ? before : title;
}
