import assert from 'node:assert/strict';
import { serveAgentCommands } from '../../../../infra/grading/tests/agent-commands.ts';
import type { ExecResult, Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import type { SandboxMaker } from '../../../helpers/sandbox/workspaces.ts';

/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const limits = { timeoutMs: 60_000, maxOutputBytes: 2 ** 20 } as const;

/** Checks what tests see of a command that they run as the agent. */
export async function checkAgentCommands(maker: SandboxMaker): Promise<void> {
  const sandbox = await maker.make();
  await serveAgentCommands(sandbox, { workdir: '/workspace', env: { GREETING: 'hi' } }, limit());
  const ask = (script: string) => asGrader(sandbox, script);

  const words = await ask(`/as-agent/run printf '<%s>' "it's" 'a "b" \\ $HOME' '' '*' "$(printf 'two\\nlines')" -n`);
  assert.equal(words.stdout.toString(), `<it's><a "b" \\ $HOME><><*><two\nlines><-n>`, words.stderr.toString());
  const surroundings = await ask('/as-agent/run sh -c "pwd; id -un; echo \\$GREETING; echo mine >own && cat own"');
  assert.deepEqual(surroundings.stdout.toString().split('\n'), ['/workspace', 'agent', 'hi', 'mine', '']);
  const streams = await ask('printf in | /as-agent/run sh -c "cat; echo err >&2; exit 7"');
  assert.deepEqual([streams.exitCode, `${streams.stdout}`, `${streams.stderr}`], [7, 'in', 'err\n']);
  assert.equal((await ask('/as-agent/run sh -c "kill -9 \\$\\$"')).exitCode, 137);
  assert.equal((await ask('/as-agent/run no-such-program')).exitCode, 127);
  assert.equal((await ask('/as-agent/run')).exitCode, 64);

  const many = 'for n in 1 2 3 4 5 6 7 8; do /as-agent/run sh -c "sleep 0.2; echo $n" & done; wait';
  assert.deepEqual(`${(await ask(many)).stdout}`.trim().split('\n').sort(), [...'12345678']);
  const large = await ask('head -c 300000 /dev/zero | /as-agent/run cat | wc -c');
  assert.equal(large.stdout.toString().trim(), '300000');
  assert.equal((await ask('ls -A /as-agent')).stdout.toString(), 'calls\nrun\n', 'a call leaves nothing behind');

  if (!sandbox.twoUids) return;
  assert.notEqual((await ask('cat /workspace/own')).exitCode, 0, 'tests could load whatever they can read');
  const reach = await ask('/as-agent/run sh -c "echo 1 >/logs/verifier/reward.txt; ls /tests; rm -f /as-agent/run"');
  const left = await ask('ls /as-agent /logs/verifier');
  assert.equal(`${reach.stdout}${left.stdout}`, '/as-agent:\ncalls\nrun\n\n/logs/verifier:\n');
  const ended = await ask('timeout 2 /as-agent/run sh -c "kill -9 -1"; echo $?; timeout 2 /as-agent/run true; echo $?');
  assert.equal(ended.stdout.toString(), '124\n124\n', 'calls time out after a command killed the server');
}

const asGrader = (sandbox: Sandbox, script: string): Promise<ExecResult> =>
  sandbox.exec({ account: 'grader', cwd: '/tests', argv: ['bash', '-c', script], env: {}, ...limits }, limit());
