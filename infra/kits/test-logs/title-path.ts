import type { ReportPosition, TestStatus } from './log-parser.ts';

/** The longest path, far longer than that of any real tree, so that one made deep on purpose costs neither memory nor time. */
const longestPath = 2048;

export interface TitlePath {
  /** Begins a suite, and closes those that are indented as much or more. */
  readonly open: (indent: number, title: string) => void;
  /** Returns the titles from the outermost suite to a test. Closes nothing: a line that a test printed may look like one. */
  readonly to: (indent: number, title: string) => readonly string[];
  readonly clear: () => void;
}

/**
 * Tracks the titles of the suites around a test, for runners that draw a tree by indentation. A path above the limit is
 * empty, which is not the id of any test.
 */
export function createTitlePath(): TitlePath {
  const suites: { readonly indent: number; readonly title: string }[] = [];
  return {
    open: (indent, title) => {
      while ((suites.at(-1)?.indent ?? -1) >= indent) suites.pop();
      suites.push({ indent, title });
    },
    to: (indent, title) => {
      const titles: string[] = [];
      let length = title.length;
      for (const suite of suites) {
        if (suite.indent >= indent) break;
        length += suite.title.length + 1;
        if (length > longestPath) return [];
        titles.push(suite.title);
      }
      return length > longestPath ? [] : [...titles, title];
    },
    clear: () => {
      suites.length = 0;
    },
  };
}

const separator = ' > ';

/** Returns the arguments that record a test of a runner whose report gives suites by position only. */
export function positioned(
  path: readonly string[],
  title: string,
  status: TestStatus,
): readonly [id: string, status: TestStatus, position: ReportPosition] {
  return [path.join(separator), status, { suite: path.slice(0, -1).join(separator), title }];
}
