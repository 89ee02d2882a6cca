import assert from 'node:assert/strict';
import { it } from 'node:test';
import Docker from 'dockerode';
import { holdVariable } from '../../../infra/agents/relay/protocol.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { agentCases, taskToFix } from '../../helpers/rollouts/agent-cases.ts';
import { startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';
import { until } from '../../helpers/until.ts';

/** Ends every bridge of a sandbox and prints how many there were. */
const killBridges = `
n=0
for p in /proc/[0-9]*; do
  tr '\\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q 'programs/bridge/main[.]js' && kill -9 "\${p#/proc/}" 2>/dev/null && n=$((n+1))
done
echo $n
`;

/** Prints how long the relay holds calls, which it was started with. */
const readHold = `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^${holdVariable}= | sort -u`;
const holdMs = 45_000;

it('an agent in a container without network and mounts works over a channel that is killed in each turn', async () => {
  const [{ agent, calls }] = agentCases as [(typeof agentCases)[number]];
  const { signal } = new AbortController();
  const provider = createDockerProvider({ stack: 'test-stack' });
  let sampled = 0;
  let kills = 0;
  let mounts: readonly string[] = [];
  let network: string | undefined;
  let hold = '';

  async function printed(name: string, script: string): Promise<string> {
    const sandbox = (await provider.attach(name)) ?? assert.fail('expected the sandbox');
    const limits = { timeoutMs: 120_000, maxOutputBytes: 1_000 } as const;
    const { stdout } = await sandbox.exec({ account: 'agent', argv: ['sh', '-c', script], env: {}, ...limits }, signal);
    return String(stdout).trim();
  }
  const kill = async (name: string): Promise<number> => Number(await printed(name, killBridges));

  const rollouts = await startAgentRollouts(
    async (_, { model: { tokens } }, name) => {
      const call = calls[sampled];
      sampled += 1;
      hold = await printed(name, readHold);
      const { HostConfig } = await new Docker().getContainer(name).inspect();
      mounts = HostConfig.Binds ?? [];
      network = HostConfig.NetworkMode;
      // The reply comes when this channel is gone and the next one is there, or on its way.
      for (let round = 0; round < 2; round += 1) kills += await until(async () => (await kill(name)) || null);
      return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
    },
    { channel: 'stream', holdMs, providerIn: () => provider },
  );
  try {
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.deepEqual([network, mounts.filter((bind) => bind.includes(':/gw'))], ['none', []]);
    assert.equal(hold, `${holdVariable}=${holdMs}`);
    assert.ok(kills >= 2 * calls.length, `killed ${kills} bridges`);
    assert.equal(result.trace?.turns, calls.length, evidence);
    assert.equal(sampled, calls.length, 'expected each turn to be sampled once');
  } finally {
    await rollouts.close();
  }
});
