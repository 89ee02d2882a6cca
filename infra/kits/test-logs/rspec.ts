import { indentOf, linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector, type ResultCollector } from './result-collector.ts';

/** The notes after the title of an example that did not pass. */
const failed = / \((?:FAILED|ERROR) - \d+\)$/;
const pending = / \(PENDING: .*\)$/s;
/** An entry of the list of failures at the end, with the full description after the place. */
const listed = /^rspec \S+ # (.+)$/s;
const totals = /^(\d+) examples?, \d+ failures?/;
const afterTree = /^(?:Pending: \(|Failures:$|Finished in |Failed examples:$)/;
const loadError = /^An error occurred while loading (\S+?)\.?$/;
/** The longest full description, and the deepest group, far above those of real examples. */
const longestId = 2048;
const deepest = 200;

interface Entry {
  readonly indent: number;
  readonly title: string;
  /** Whether entries below it were seen, one level deeper. */
  isGroup: boolean;
}

/**
 * Reads RSpec with `--format documentation`. Ids are full descriptions: the titles of the groups and of the example, separated
 * by blanks. A line of a group looks like one of an example that passed: an example is a line without others below it. If a
 * test printed such lines, fewer examples are found than RSpec counts; then each line counts as an example.
 *
 * The default format names failures alone, by the list at the end, which is read wherever it stands.
 */
export const rspec: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    const tree = createTree(collector);
    let examples: number | null = null;
    let isOver = false;
    let isList = false;
    for (const line of linesOf(log)) {
      const description = listed.exec(line)?.[1];
      isList = line === 'Failed examples:' || (isList && (line === '' || description !== undefined));
      if (description !== undefined && isList) collector.record(description, 'FAILED');
      else if (description !== undefined) collector.recordOutside(description, 'FAILED');
      const count = totals.exec(line)?.[1];
      if (count !== undefined) examples = (examples ?? 0) + Number(count);
      const unloaded = loadError.exec(line)?.[1];
      if (unloaded !== undefined) collector.recordProblem('collection-error', unloaded);
      // A later tree is that of another run in the same log.
      if (afterTree.test(line)) isOver = true;
      else if (count !== undefined) isOver = false;
      if (!isOver) tree.read(line);
    }
    tree.finish(examples);
    return collector.finish();
  },
};

function createTree(collector: ResultCollector): {
  readonly read: (line: string) => void;
  readonly finish: (examples: number | null) => void;
} {
  const open: Entry[] = [];
  const groups: string[] = [];
  let found = 0;
  let afterBlank = true;
  const idOf = (indent: number, title: string): string => {
    const titles = open.filter((one) => one.isGroup && one.indent < indent).map((one) => one.title);
    const id = [...titles, title].join(' ');
    return titles.length === 0 || id.length > longestId ? '' : id;
  };
  const record = (indent: number, title: string, status: TestStatus): void => {
    const id = idOf(indent, title);
    if (id !== '') found += 1;
    collector.record(id, status);
  };
  const closeTo = (indent: number): void => {
    for (let last = open.at(-1); last !== undefined && last.indent >= indent; last = open.at(-1)) {
      open.pop();
      if (last.isGroup) groups.push(idOf(last.indent, last.title));
      else record(last.indent, last.title, 'PASSED');
    }
  };
  /** Notes that an entry stands below the last one. */
  const nest = (indent: number): void => {
    const last = open.at(-1);
    if (last !== undefined && last.indent === indent - 2) last.isGroup = true;
  };
  const read = (line: string): void => {
    const indent = indentOf(line);
    const title = line.trim();
    if (title === '') closeTo(0);
    else if (indent % 2 === 0 && indent < deepest && (indent > 0 || afterBlank)) {
      closeTo(indent);
      nest(indent);
      readEntry(indent, title, (plain) => open.push({ indent, title: plain, isGroup: false }));
    } else if (indent === 0) {
      // Output without a line end stands before the entry, which begins with the blanks of its level.
      const at = line.lastIndexOf('  ');
      const start = line.slice(0, at).trimEnd().length;
      const blanks = at + 2 - start;
      const level = blanks - (blanks % 2);
      if (at === -1 || level >= deepest || open.length === 0) return;
      nest(level);
      readEntry(level, line.slice(at + 2), (plain) => record(level, plain, 'PASSED'));
    }
    afterBlank = title === '';
  };
  const readEntry = (indent: number, text: string, plain: (title: string) => void): void => {
    if (failed.test(text)) record(indent, text.replace(failed, ''), 'FAILED');
    else if (pending.test(text)) record(indent, text.replace(pending, ''), 'SKIPPED');
    else plain(text);
  };
  return {
    read,
    finish: (examples) => {
      closeTo(0);
      if (found > 0 && examples === null)
        collector.recordProblem('crashed', `RSpec ended after ${found} examples, without its totals`);
      else if (examples !== null && found > 0 && found < examples) {
        for (const id of groups) collector.record(id, 'PASSED');
        collector.recordProblem('miscounted', `${examples} examples ran, ${found} were found`);
      }
    },
  };
}
