/**
 * Tests that run the code under test as programs of another account: they run as the grader, and `/as-agent/run COMMAND...`
 * runs a command as the agent and gives back its output and its exit status. No account here has the right to become another,
 * so a server of the agent's account takes the calls. All that comes out of it is the word of the code under test, which may
 * end the server or answer in its place; nothing but pipes and files that the grader owns lies between the two.
 */
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { FileTree } from '../sandbox/files.ts';
import type { Account, Sandbox } from '../sandbox/sandbox.ts';

const directory = '/as-agent';
const limits = { timeoutMs: 60_000, maxOutputBytes: 64 * 1024 } as const;

/** Its input is the caller's, read ahead, as ssh does. Exit status 125: the call was not made. */
const run = String.raw`#!/bin/sh
[ $# -gt 0 ] || { echo 'usage: ${directory}/run COMMAND [ARGUMENT...]' >&2; exit 64; }
umask 022
call=$(mktemp -d ${directory}/call.XXXXXX) && chmod 755 "$call" || exit 125
mkfifo -m 644 "$call/in" && mkfifo -m 622 "$call/out" "$call/err" "$call/end" || exit 125
{
  echo 'exec \'
  for word; do printf '%s\n' "$word" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/' \\\\/"; done
  echo
} >"$call/command"
exec 3<&0
cat <&3 >"$call/in" 2>/dev/null & input=$!
exec 3<&-
cat <"$call/out" & out=$!
cat <"$call/err" >&2 & err=$!
echo "$(basename "$call")" >${directory}/calls
read -r status <"$call/end"
wait "$out" "$err"
kill "$input" 2>/dev/null
rm -rf "$call"
case $status in '' | *[!0-9]*) exit 125 ;; esac
exit "$status"
`;

/** $1 the workspace, in which all commands run. */
const serve = `
cd "$1" || exit 125
exec 3<>${directory}/calls
answer() {
  sh "${directory}/$1/command" <"${directory}/$1/in" >"${directory}/$1/out" 2>"${directory}/$1/err" 3>&-
  echo $? >"${directory}/$1/end"
}
while read -r call <&3; do answer "$call" & done
`;

const tree: FileTree = new Map([['run', { mode: 0o755, bytes: Buffer.from(run) }]]);

/**
 * Starts the server, and shuts the workspace against the account of the tests: what they could read, they could load.
 * Throws SandboxUnavailable.
 */
export async function offerAsAgent(
  sandbox: Sandbox,
  { workdir, env }: { readonly workdir: string; readonly env: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<void> {
  await sandbox.putFiles({ tree, at: directory, owner: 'grader' }, signal);
  const prepare = async (account: Account, argv: readonly [string, ...string[]]): Promise<void> => {
    const { exitCode, stderr } = await sandbox.exec({ account, cwd: '/', env: {}, argv, ...limits }, signal);
    if (exitCode === 0) return;
    const text = `expected ${argv.join(' ')} as the ${account}, got exit code ${exitCode}: ${stderr.toString().trim()}`;
    throw new TemperFailure('SandboxUnavailable', text);
  };
  await prepare('grader', ['mkfifo', '-m', '666', `${directory}/calls`]);
  await prepare('agent', ['chmod', '700', workdir]);
  const argv = ['sh', '-c', serve, 'as-agent', workdir] as const;
  await sandbox.start({ key: 'as-agent', account: 'agent', cwd: '/', argv, env }, signal);
}
