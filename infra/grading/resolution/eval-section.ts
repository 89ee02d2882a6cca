import { linesOf } from '../../kits/test-logs/index.ts';

/** The lines around the tests' output. */
export interface SectionMarks {
  readonly start: string;
  readonly end: string;
  /** The line between the output of one command and that of the next. */
  readonly next?: string;
}

/** SWE-bench's marks (swebench/harness/constants, `START_TEST_OUTPUT`). Its scripts print them by `set -x` of `: '…'`. */
export const swebenchMarks: SectionMarks = { start: '>>>>> Start Test Output', end: '>>>>> End Test Output' };

const nextOutput = '>>>>> Next Test Output';

/** Returns the marks of one evaluation, which tests cannot print. The end mark names the exit status of their command. */
export const marksWith = (nonce: string, exitCode: number): SectionMarks => ({
  start: `${swebenchMarks.start} ${nonce}`,
  end: `${swebenchMarks.end} ${nonce} ${exitCode}`,
  next: `${nextOutput} ${nonce}`,
});

/**
 * The separator of the commands in a script that runs a test runner more than once. It does nothing alone: runLoggedTests
 * replaces it by a command that prints the mark.
 */
export const nextCommand = `: '${nextOutput}'`;

/** Lines that SWE-bench's harness writes outside the section when there is nothing to judge. */
const failures = ['>>>>> Patch Apply Failed', '>>>>> Reset Failed', '>>>>> Tests Errored', '>>>>> Tests Timed Out'];

export type EvalSection =
  /** `logs`: one for each command. */
  { readonly found: true; readonly logs: readonly string[] } | { readonly found: false; readonly reason: string };

/**
 * Finds the part of a log that the tests wrote. The start and the end mark must each occur exactly once, on a line of its
 * own: otherwise a test that prints one could cut off the runner's report after it.
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
