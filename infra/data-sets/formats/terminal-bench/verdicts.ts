/**
 * The verdicts in the output of `run-tests.sh`, by the name of the parser (terminal_bench/parsers/): commands of bash that
 * succeed if the task is solved. `$text` is the output without colours. They are stricter than the original harness where
 * that would call a task solved for want of a failure: skipped tests alone do not solve one, a failure that is named beside a
 * success counts, and a verdict between marks is the only one.
 */
export const verdicts: Readonly<Record<string, string>> = {
  // The short summary must name a passing test and no failing one.
  pytest: `summary=$(sed -n '/=.* short test summary info .*=/,$p' <<<"$text")
grep -Eq '^(PASSED|XFAIL) ' <<<"$summary" && ! grep -Eq '^(FAILED|ERROR|XPASS) ' <<<"$summary"`,
  swebench: betweenMarks('SWEBench results', 'PASSED'),
  sweperf: betweenMarks('SWE-Perf results', 'PASSED'),
  mlebench: betweenMarks('MLEBench results', 'ALL TESTS PASSED'),
  swelancer: `grep -iq 'swe lancer success' <<<"$text" && ! grep -iq 'swe lancer failure' <<<"$text"`,
};

/** Returns a command that succeeds if exactly this word stands between the lines that mark the results. */
function betweenMarks(marks: string, word: string): string {
  return `said=$(sed -n '/^${marks} starts here *$/,/^${marks} ends here *$/p' <<<"$text" | sed -e 's/ *$//' -e '/^$/d')
[ "$said" = '${marks} starts here
${word}
${marks} ends here' ]`;
}
