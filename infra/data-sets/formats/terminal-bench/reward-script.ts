/**
 * The `test.sh` of terminal-bench tasks, which runs `/tests/run-tests.sh` and writes the reward. Pytest's short summary must
 * name a passing test and no failing one (terminal_bench/parsers/pytest_parser.py: without a summary the task is not solved).
 * The exit code alone is no verdict, since many scripts end with a command other than pytest. Two rules are stricter than the
 * original harness: the script must exit with status 0, and skipped tests alone do not solve a task.
 *
 * The output is copied while it arrives, so that a script that times out leaves some. The wait for it is limited, since a
 * background process may hold the output open.
 */
export const testScript = `#!/bin/bash
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
