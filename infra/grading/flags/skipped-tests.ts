/** One way in which runners say how many tests ran: each match is one summary. */
interface Summary {
  readonly line: RegExp;
  /** Returns the number of tests that ran, by the groups of a match. */
  ran(groups: readonly (string | undefined)[]): number;
}

const sumOf = (text: string, word: RegExp): number =>
  [...text.matchAll(word)].reduce((sum, [, count]) => sum + Number(count), 0);
const number = (text: string | undefined): number => Number(text ?? 0);

const summaries: readonly Summary[] = [
  // pytest: `==== 3 passed, 1 skipped in 0.12s ====`, `no tests ran in 0.00s`
  {
    line: /^(?:=+ )?((?:\d+ [a-z]+(?:, )?){1,8}|no tests ran) in \d+\.\d\ds/gm,
    ran: ([text = '']) => sumOf(text, /(\d+) (?:passed|failed|errors?|xfailed|xpassed)\b/g),
  },
  // unittest: `Ran 3 tests in 0.001s`, an empty line, `OK (skipped=3)`
  {
    line: /^Ran (\d+) tests? in [\d.]+s\n+(?:OK|FAILED|NO TESTS RAN)(?: \((?:[a-z ]+=\d+, ){0,4}skipped=(\d+))?/gm,
    ran: ([ran, skipped]) => number(ran) - number(skipped),
  },
  // Jest: `Tests:       3 skipped, 3 total`, Vitest: `      Tests  3 skipped (3)`
  {
    line: /^ *Tests:? +((?:\d+ [a-z]+(?:, | \| | )?){1,6})/gm,
    ran: ([text = '']) => sumOf(text, /(\d+) (?:passed|failed)\b/g),
  },
  // node:test and TAP: `# pass 3`
  { line: /^(?:#|ℹ) (?:pass|fail) (\d+)$/gm, ran: ([count]) => number(count) },
  // Mocha: `  3 passing (12ms)`
  { line: /^ *(\d+) (?:passing|failing)\b/gm, ran: ([count]) => number(count) },
  // cargo: `test result: ok. 3 passed; 0 failed; 1 ignored; …`
  {
    line: /^test result: \w+\. (\d+) passed; (\d+) failed;/gm,
    ran: ([passed, failed]) => number(passed) + number(failed),
  },
];

/** Returns the line of a summary if the log has summaries of runners, and none of them says that a test ran; null otherwise. */
export function skippedAll(log: string): string | null {
  let first: string | null = null;
  for (const { line, ran } of summaries) {
    for (const [text, ...groups] of log.matchAll(line)) {
      if (ran(groups) > 0) return null;
      first ??= text;
    }
  }
  return first;
}
