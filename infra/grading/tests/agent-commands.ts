import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { FileTree } from '../../sandbox/files.ts';
import { byImage } from '../../sandbox/image-environment.ts';
import type { Account, Sandbox } from '../../sandbox/sandbox.ts';
import { useOwnPrograms } from '../../sandbox/shell/own-programs.ts';

/*
 * Commands that tests run as the agent's account.
 *
 * The tests run as the grader. `/as-agent/run COMMAND...` runs a command as the agent, and returns its output and its exit
 * status. Neither account may become the other, so a server under the agent's account executes the calls. Everything that
 * comes from it is a claim of the code under test, which may kill the server or answer in its place: only pipes and files
 * that the grader owns lie between the two.
 *
 * A call is a directory `/as-agent/call.XXXXXX` of the grader with the command as a script, and four pipes: `in`, `out`,
 * `err`, and `end` for the exit status. The client writes its name to the pipe `/as-agent/calls`, which the server reads.
 */
const directory = '/as-agent';
const limits = { timeoutMs: 60_000, maxOutputBytes: 64 * 1024 } as const;

/** The client. Its whole input is sent to the command, as ssh does. Exit status 125: the call could not be made. */
const client = String.raw`#!/bin/sh
# The tests may have the image's PATH, which may lead to programs of the agent.
${useOwnPrograms}[ $# -gt 0 ] || { echo 'usage: ${directory}/run COMMAND [ARGUMENT...]' >&2; exit 64; }

# The call's directory: the agent may read the command and the input, and write only into the three other pipes.
umask 022
call=$(mktemp -d ${directory}/call.XXXXXX) && chmod 755 "$call" || exit 125
mkfifo -m 644 "$call/in" && mkfifo -m 622 "$call/out" "$call/err" "$call/end" || exit 125

# The command as a script: one quoted word a line.
{
  echo 'exec \'
  for word; do printf '%s\n' "$word" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/' \\\\/"; done
  echo
} >"$call/command"

# Connect the streams, announce the call, and wait for its status and for the rest of its output.
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

/** The server. Runs each call at once, in the workspace, which is $1. */
const server = `
cd "$1" || exit 125
# Open for reading and writing, so that the pipe never ends.
exec 3<>${directory}/calls
answer() {
  /bin/sh "${directory}/$1/command" <"${directory}/$1/in" >"${directory}/$1/out" 2>"${directory}/$1/err" 3>&-
  echo $? >"${directory}/$1/end"
}
while read -r call <&3; do answer "$call" & done
`;

const files: FileTree = new Map([['run', { mode: 0o755, bytes: Buffer.from(client) }]]);

/**
 * Starts the server, and closes the workspace to the account of the tests, which could load whatever they can read.
 * Throws SandboxUnavailable.
 */
export async function serveAgentCommands(
  sandbox: Sandbox,
  { workdir, env }: { readonly workdir: string; readonly env: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<void> {
  await sandbox.putFiles({ tree: files, at: directory, owner: 'grader' }, signal);
  const prepare = async (account: Account, argv: readonly [string, ...string[]]): Promise<void> => {
    const { exitCode, stderr } = await sandbox.exec({ account, cwd: '/', env: {}, argv, ...limits }, signal);
    if (exitCode === 0) return;
    throw new TemperFailure(
      'SandboxUnavailable',
      `${argv.join(' ')} as the ${account} ended with exit code ${exitCode}: ${stderr.toString().trim()}; the evaluation is retried`,
    );
  };
  await prepare('grader', ['mkfifo', '-m', '666', `${directory}/calls`]);
  await prepare('agent', ['chmod', '700', workdir]);
  const command = byImage(['/bin/sh', '-c', server, 'as-agent', workdir]);
  await sandbox.start({ key: 'as-agent', account: 'agent', cwd: '/', ...command, env }, signal);
}
