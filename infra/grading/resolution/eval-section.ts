import { linesOf } from '../../kits/test-logs/index.ts';

/** The lines between which the tests' output stands. */
export interface SectionMarks {
  readonly start: string;
  readonly end: string;
  /** Stands between the output of one command and that of the next. */
  readonly next?: string;
}

/** SWE-bench's (swebench/harness/constants, `START_TEST_OUTPUT`). Its scripts write them by `set -x` of `: '…'`. */
export const swebenchMarks: SectionMarks = { start: '>>>>> Start Test Output', end: '>>>>> End Test Output' };

const nextOutput = '>>>>> Next Test Output';

/** Marks of an evaluation of its own, which tests can't print: the end names the status that their command ended with. */
export const marksWith = (nonce: string, exitCode: number): SectionMarks => ({
  start: `${swebenchMarks.start} ${nonce}`,
  end: `${swebenchMarks.end} ${nonce} ${exitCode}`,
  next: `${nextOutput} ${nonce}`,
});

/**
 * Stands between the commands of a script that runs a test runner more than once, and does nothing by itself. Whoever runs
 * the script puts a command in its place that prints the mark.
 */
export const nextCommand = `: '${nextOutput}'`;

/** What SWE-bench's harness writes outside of the section when there is nothing to judge. */
const failures = ['>>>>> Patch Apply Failed', '>>>>> Reset Failed', '>>>>> Tests Errored', '>>>>> Tests Timed Out'];

export type EvalSection =
  /** One log for each command. */
  { readonly found: true; readonly logs: readonly string[] } | { readonly found: false; readonly reason: string };

/**
 * The part of a log that the tests wrote. Each mark must stand in it exactly once, in a line of its own: a test that prints
 * one could otherwise cut away what the runner says after it.
 */
export function evalSection(log: string, marks: SectionMarks): EvalSection {
  const logs: string[][] = [[]];
  const seen = { starts: 0, ends: 0 };
  for (const line of linesOf(log)) {
    if (isMark(line, marks.start)) seen.starts += 1;
    else if (isMark(line, marks.end)) seen.ends += 1;
    else if (seen.starts > 0 && seen.ends === 0) {
      if (marks.next !== undefined && isMark(line, marks.next)) logs.push([]);
      else logs.at(-1)?.push(line);
    } else {
      const failure = failures.find((one) => line.startsWith(one));
      if (failure !== undefined) return { found: false, reason: `the log says ${JSON.stringify(failure)}` };
    }
    if (seen.ends > seen.starts) return { found: false, reason: 'the end of the tests stands before their start' };
  }
  if (seen.starts === 1 && seen.ends === 1) return { found: true, logs: logs.map((lines) => lines.join('\n')) };
  const reason = `expected one start and one end of the tests in the log, got ${seen.starts} and ${seen.ends}`;
  return { found: false, reason };
}

const isMark = (line: string, mark: string): boolean => {
  const text = line.trim();
  return text === mark || /^\++ : '(.*)'$/s.exec(text)?.[1] === mark;
};
