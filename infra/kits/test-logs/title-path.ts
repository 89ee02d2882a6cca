import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import type { Place } from './parsed-tests.ts';

/** Far beyond the titles of any tree, so that one made to be deep takes no memory and time. */
const longestPath = 2048;

export interface TitlePath {
  /** A suite begins: it closes those that are as far in or further. */
  readonly open: (indent: number, title: string) => void;
  /** The titles on the way to a test. It closes nothing: a line that a test printed may look like one. */
  readonly to: (indent: number, title: string) => readonly string[];
  readonly clear: () => void;
}

/**
 * The titles of the suites around a test, where a runner draws them as a tree by indentation. Beyond the limit a path is
 * empty, which is no test's id.
 */
export function createTitlePath(): TitlePath {
  const suites: { readonly indent: number; readonly title: string }[] = [];
  return {
    open: (indent, title) => {
      while ((suites.at(-1)?.indent ?? -1) >= indent) suites.pop();
      suites.push({ indent, title });
    },
    to: (indent, title) => {
      const way: string[] = [];
      let length = title.length;
      for (const suite of suites) {
        if (suite.indent >= indent) break;
        length += suite.title.length + 1;
        if (length > longestPath) return [];
        way.push(suite.title);
      }
      return length > longestPath ? [] : [...way, title];
    },
    clear: () => {
      suites.length = 0;
    },
  };
}

const separator = ' > ';

/** A test with its id and its place, for runners whose reports say nothing of a suite but where it stands. */
export function placed(
  way: readonly string[],
  title: string,
  status: TestStatus,
): readonly [id: string, status: TestStatus, place: Place] {
  return [way.join(separator), status, { suite: way.slice(0, -1).join(separator), title }];
}
