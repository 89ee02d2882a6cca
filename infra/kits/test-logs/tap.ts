import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { indentOf, linesOf } from './lines.ts';
import { createTally, type LogParser, type ParsedTests } from './parsed-tests.ts';
import { createTitlePath, placed } from './title-path.ts';

const result = /^(ok|not ok)(?: +(\d+))?(?: +- +| +|$)(.*)$/s;
const directive = /(?:^|[^\\])# *(SKIP|TODO)\b/i;
const subtest = '# Subtest: ';

/** TAP 13 and 14, as node:test writes it. Ids are the titles on the way to a test: `suite > test`. */
export const tap: LogParser = { parse: (log) => parseTap(log, (title) => title) };

/**
 * Reads TAP. A sub-test is indented under its parent, whose result comes last. The YAML block after a result is data about
 * it, up to its end or a line less far in: what looks like a pass there is a part of some message.
 */
export function parseTap(log: string, titleOf: (description: string) => string): ParsedTests {
  const tally = createTally();
  const path = createTitlePath();
  let planned: number | null = null;
  let reported = 0;
  let block: number | null = null;
  let afterResult = -1;
  for (const line of linesOf(log)) {
    const indent = indentOf(line);
    const text = line.slice(indent).trimEnd();
    const [, word, number = '', rest = ''] = result.exec(text) ?? [];
    const { description, status } = read(word === 'ok', rest);
    const title = titleOf(description) || number;
    if (block !== null && (text === '' || indent >= block)) {
      if (text === '...' && indent === block) block = null;
      else if (word !== undefined) tally.against(...placed(path.to(indent, title), title, status));
      continue;
    }
    block = text === '---' && indent > afterResult && afterResult !== -1 ? indent : null;
    afterResult = word === undefined ? -1 : indent;
    if (word !== undefined) {
      if (indent === 0) reported += 1;
      tally.record(...placed(path.to(indent, title), title, status));
    } else if (text.startsWith(subtest)) path.open(indent, titleOf(unescaped(text.slice(subtest.length))));
    else if (text.startsWith('Bail out!')) tally.problem('crashed', text);
    const plan = indent === 0 ? /^1\.\.(\d+)/.exec(text)?.[1] : undefined;
    if (plan !== undefined) planned = (planned ?? 0) + Number(plan);
  }
  if (planned !== null && planned !== reported) {
    tally.problem('miscounted', `the plan has ${planned} tests, ${reported} were reported`);
  }
  return tally.done();
}

/** A test marked TODO is expected to fail: TAP takes its failure for none, and its success for a bonus. */
function read(ok: boolean, rest: string): { readonly description: string; readonly status: TestStatus } {
  const found = directive.exec(rest);
  const mark = found?.[1]?.toUpperCase();
  const description = unescaped(found === null ? rest : rest.slice(0, rest.indexOf('#', found.index))).trim();
  if (mark === 'SKIP') return { description, status: 'SKIPPED' };
  if (mark === 'TODO') return { description, status: ok ? 'XPASS' : 'XFAIL' };
  return { description, status: ok ? 'PASSED' : 'FAILED' };
}

const unescaped = (text: string): string => text.replace(/\\([\\#])/g, '$1');
