import { blanksBefore, indentOf, linesOf } from './lines.ts';
import type { LogParser, ParsedTests, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';
import { createTitlePath, positioned } from './title-path.ts';

const result = /^(ok|not ok)(?: +(\d+))?(?: +- +| +|$)(.*)$/s;
const directive = /(?:^|[^\\])# *(SKIP|TODO)\b/i;
const subtest = '# Subtest: ';

/** Reads TAP 13 and 14, as node:test writes it. Ids are the path of titles to a test: `suite > test`. */
export const tap: LogParser = { parse: (log) => parseTap(log, (title) => title) };

/**
 * Reads TAP. A sub-test is indented under its parent, whose result comes last. The YAML block after a result describes it,
 * up to the block's end or a less indented line: a pass inside it is part of a message.
 */
export function parseTap(log: string, titleOf: (description: string) => string): ParsedTests {
  const collector = createResultCollector();
  const path = createTitlePath();
  let planned: number | null = null;
  let reported = 0;
  let block: number | null = null;
  let afterResult = -1;
  const numbers = createNumbers();
  for (const line of linesOf(log)) {
    const own = afterText(line, numbers.next);
    const indent = indentOf(own);
    const text = own.slice(indent).trimEnd();
    const [, word, number = '', rest = ''] = result.exec(text) ?? [];
    if (word !== undefined) numbers.note(indent, Number(number));
    const { description, status } = read(word === 'ok', rest);
    const title = titleOf(description) || number;
    if (block !== null && (text === '' || indent >= block)) {
      if (text === '...' && indent === block) block = null;
      else if (word !== undefined) collector.recordOutside(...positioned(path.to(indent, title), title, status));
      continue;
    }
    block = text === '---' && indent > afterResult && afterResult !== -1 ? indent : null;
    afterResult = word === undefined ? -1 : indent;
    if (word !== undefined) {
      if (indent === 0) reported += 1;
      collector.record(...positioned(path.to(indent, title), title, status));
    } else if (text.startsWith(subtest)) path.open(indent, titleOf(unescaped(text.slice(subtest.length))));
    else if (text.startsWith('Bail out!')) collector.recordProblem('crashed', text);
    const plan = indent === 0 ? /^1\.\.(\d+)/.exec(text)?.[1] : undefined;
    if (plan !== undefined) planned = (planned ?? 0) + Number(plan);
  }
  if (planned !== null && planned !== reported) {
    collector.recordProblem('miscounted', `the plan has ${planned} tests, ${reported} were reported`);
  }
  return collector.finish();
}

/** The longest printed text before a result on its line. */
const longestText = 4096;
const textBefore = /(?:not ok|ok) \d+(?= |$)|# Subtest: /g;

/**
 * Returns a line without the text that was printed before its result, or before the name of a sub-test, without a line end.
 * Only a pass with the next number of its level is known to be one. A comment has no results.
 */
function afterText(line: string, nextOf: (indent: number) => number): string {
  const trimmed = line.trimStart();
  if (trimmed.startsWith('#') || result.test(trimmed) || line.length > longestText) return line;
  for (const { index, 0: found } of line.matchAll(textBefore)) {
    const start = index - blanksBefore(line, index);
    const own = line.slice(start);
    // Printed text may end with blanks; levels are four apart.
    const indent = Math.floor(indentOf(own) / 4) * 4;
    const number = /\d+$/.exec(found)?.[0];
    if (start > 0 && (number === undefined || found.startsWith('not') || Number(number) === nextOf(indent)))
      return `${' '.repeat(indent)}${own.trimStart()}`;
  }
  return line;
}

/** Tracks the numbers of results by their indentation. */
function createNumbers(): {
  readonly note: (indent: number, number: number) => void;
  readonly next: (indent: number) => number;
} {
  const last = new Map<number, number>();
  return {
    note: (indent, number) => {
      for (const level of last.keys()) if (level > indent) last.delete(level);
      last.set(indent, number);
    },
    next: (indent) => (last.get(indent) ?? 0) + 1,
  };
}

/** Reads a result line. A test marked TODO is expected to fail: TAP ignores its failure, and counts its success as a bonus. */
function read(ok: boolean, rest: string): { readonly description: string; readonly status: TestStatus } {
  const found = directive.exec(rest);
  const mark = found?.[1]?.toUpperCase();
  const description = unescaped(found === null ? rest : rest.slice(0, rest.indexOf('#', found.index))).trim();
  if (mark === 'SKIP') return { description, status: 'SKIPPED' };
  if (mark === 'TODO') return { description, status: ok ? 'XPASS' : 'XFAIL' };
  return { description, status: ok ? 'PASSED' : 'FAILED' };
}

const unescaped = (text: string): string => text.replace(/\\([\\#])/g, '$1');
