/**
 * terminal-bench's verdict of `/tests/run-tests.sh`, in the sandbox of the tests: pytest's short summary names a test that
 * passed and none that failed (terminal_bench/parsers/pytest_parser.py: without a summary nothing is solved). The exit code
 * alone is none, since many scripts end with something else than pytest. Stricter than that harness: the script has to end
 * well too, and skipped tests alone solve nothing.
 *
 * The output is copied as it comes, so that a script that runs out of time has some; what a process that stays behind holds
 * open is not waited for.
 */
export const rewardOfSummary = `#!/bin/bash
export TEST_DIR=/tests
mkdir -p /logs/verifier
output=/logs/verifier/output.txt
pipe=/logs/verifier/output.pipe
mkfifo "$pipe" || exit 1
tee "$output" <"$pipe" &
copier=$!
bash /tests/run-tests.sh >"$pipe" 2>&1
passed=$?
for _ in 1 2 3 4 5 6 7 8 9 10; do
  kill -0 "$copier" 2>/dev/null || break
  sleep 0.2
done
summary=$(sed -e $'s/\\e\\\\[[0-9;]*m//g' "$output" | sed -n '/=.* short test summary info .*=/,$p')
if [ $passed -eq 0 ] && grep -Eq '^(PASSED|XFAIL) ' <<<"$summary" &&
  ! grep -Eq '^(FAILED|ERROR|XPASS) ' <<<"$summary"; then
  echo 1 >/logs/verifier/reward.txt
else
  echo 0 >/logs/verifier/reward.txt
fi
exit 0
`;
