import type { TestStatus } from './log-parser.ts';
import { idBeforeReason, nodeAtStart } from './pytest-id.ts';

export type PytestReport = readonly [id: string, status: TestStatus];

const summaryLine = /^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*)$/s;
const ofWorker = /^\[gw\d+\] \[ *\d+%\] (\S.*)$/s;
const statuses: readonly TestStatus[] = ['PASSED', 'FAILED', 'ERROR', 'SKIPPED', 'XFAIL', 'XPASS'];
const withReason: readonly TestStatus[] = ['SKIPPED', 'XFAIL', 'XPASS'];
/** The share of tests that have run, their number, or the time of one. With `-s` pytest writes no share. */
const progressMark = / \[ *\d+(?:%|\/\d+)\]$/;
const timeMark = / \d+(?:\.\d+)?(?:ms|us|ns|s|m|h)$/;
const failedPart = /(?:^| )SUBFAIL(?:ED)?(?=[\s[(]|$)/;
/** More names than a description of a sub-test and its test have. */
const mostNames = 8;

/** Reads `STATUS id - reason`; the id is a file if that could not be collected. */
export function summaryReport(line: string): PytestReport | null {
  const [, word, rest = ''] = summaryLine.exec(line) ?? [];
  const status = statuses.find((one) => one === word);
  // A passed test has no reason: all of the rest is its id.
  return status === undefined ? null : [status === 'PASSED' ? rest : idBeforeReason(rest), status];
}

/** Whether a line is that of a worker of pytest-xdist, which writes the id of a test both before and after it. */
export const isOfWorker = (line: string): boolean => ofWorker.test(line);

/**
 * Reads `id STATUS (reason) [ 50%]`, or `[gw0] [ 50%] STATUS id` of pytest-xdist. With `-s` a test's output stands between its
 * id and its status, perhaps without a line end.
 */
export function verboseReport(line: string): PytestReport | null {
  const worked = ofWorker.exec(line)?.[1];
  const ofIt = worked === undefined ? null : summaryReport(worked);
  if (ofIt !== null) return [worked?.slice(ofIt[1].length).trim() ?? '', ofIt[1]];
  if (line.startsWith(' ') || !line.includes('::')) return null;
  const found = statusAtEnd(line);
  if (found === null) return null;
  const [before, status, marked] = found;
  // Without a share something may be printed before the status; an id has no blanks outside of its parameters.
  const id = marked && before.endsWith(' ') ? before : nodeAtStart(before);
  return id.includes('::') && (before.endsWith(' ') || id !== before) ? [id.trim(), status] : null;
}

/** Reads the status at the end of a line; null if there is none, or that of a sub-test. */
export function statusAtEnd(line: string): readonly [before: string, status: TestStatus, marked: boolean] | null {
  const marked = progressMark.test(line.trimEnd());
  const text = line.trimEnd().replace(progressMark, '').replace(timeMark, '').trimEnd();
  const plain = statuses.find((one) => text.endsWith(one));
  const reasoned = text.endsWith(')') ? withReason.find((one) => text.includes(`${one} (`)) : undefined;
  const status = plain ?? reasoned;
  if (status === undefined) return null;
  const before = plain === undefined ? text.slice(0, text.indexOf(`${status} (`)) : text.slice(0, -status.length);
  return before.endsWith('SUB') ? null : [before, status, marked];
}

/**
 * Returns the ids that a failed sub-test may belong to; none if the line reports no such failure. pytest-subtests writes
 * `[message] (n=2) SUBFAIL id - reason`, older versions without the description, and pytest 9
 * `SUBFAILED[message] (n=2) id - reason`. With `-v` the id comes first, and pytest-subtests reports the test as passed.
 */
export function parentsOfFailedPart(line: string): readonly string[] {
  const text = ofWorker.exec(line)?.[1] ?? line;
  const at = text.search(failedPart);
  if (at === -1) return [];
  if (text.slice(0, at).includes('::') && !/^[\s[(]/.test(text)) return [nodeAtStart(text)];
  const after = text.slice(at + 1);
  const names: string[] = [];
  for (
    let blank = after.indexOf(' ');
    blank !== -1 && names.length < mostNames;
    blank = after.indexOf(' ', blank + 1)
  ) {
    const end = after.indexOf(' ', blank + 1);
    const word = after.slice(blank + 1, end === -1 ? undefined : end);
    if (word.includes('::')) names.push(idBeforeReason(after.slice(blank + 1)));
  }
  return names;
}
