import type { Mount } from '../../../compose/mounts.ts';
import { quote } from '../../shell.ts';
import { verdicts } from './verdicts.ts';

/**
 * Returns the `test.sh` of a task, which runs `/tests/run-tests.sh` and writes the reward that its parser reads from the
 * output. The exit code alone is no verdict, since many scripts end with a command other than the tests; yet the script must
 * exit with status 0. `mounts` are those whose files no agent may see: they are placed now.
 *
 * The output is copied while it arrives, so that a script that times out leaves some. The wait for it is limited, since a
 * background process may hold the output open.
 */
export const testScript = (parser: string, mounts: readonly Mount[]): string => `#!/bin/bash
export TEST_DIR=/tests
mkdir -p /logs/verifier
here=$PWD
${mounts.flatMap(placeHidden).join('')}output=/logs/verifier/output.txt
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
text=$(sed -e $'s/\\e\\\\[[0-9;]*m//g' -e $'s/\\r$//' "$output")
solved() {
${verdicts[parser] ?? 'false'}
}
if [ $passed -eq 0 ] && solved; then
  echo 1 >/logs/verifier/reward.txt
else
  echo 0 >/logs/verifier/reward.txt
fi
exit 0
`;

const testsDirectory = 'tests';

/** The commands that place the tests among the mounted files. What an agent left at their place goes. */
function placeHidden({ source, target }: Mount): readonly string[] {
  if (source === '') {
    return [
      ...placeHidden({ source: testsDirectory, target: `${target}/${testsDirectory}`, readOnly: false }),
      `cp --remove-destination /tests/run-tests.sh ${quote(`${target}/run-tests.sh`)}\n`,
    ];
  }
  const isTests = source === testsDirectory || source.startsWith(`${testsDirectory}/`);
  if (!isTests || `${target}/`.startsWith('/tests/')) return [];
  const from = quote(`/tests${source.slice(testsDirectory.length)}`);
  const to = quote(target);
  // A workdir below the target, or the target itself, holds the agent's work.
  const clear = `case $here/ in ${to}/*) ;; *) rm -rf ${to} ;; esac`;
  return [
    `if [ -d ${from} ]; then\n  ${clear}\n  mkdir -p ${to} && cp -R --remove-destination ${from}/. ${to}\n`,
    `elif [ -e ${from} ]; then\n  mkdir -p "$(dirname ${to})" && cp --remove-destination ${from} ${to}\nfi\n`,
  ];
}
