import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChannelKind, SandboxKind, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { NetworkUse } from '../../../workflows/contracts/network.ts';
import { startRollouts } from '../rollouts/rollouts.ts';
import { startNamedNetwork, writeNetworkedTask } from './networked-task.ts';

export interface NetworkedRollout {
  readonly kind: SandboxKind;
  /** Default: the local provider. */
  readonly provider?: SandboxProvider;
  readonly channel?: ChannelKind;
  readonly gradedIn?: 'same';
}

/**
 * Rolls the reference solution out for a task in which the agent and the tests have networks of their own, and asserts that each
 * phase reached its own host alone, that both are recorded, and that nothing of the networks is left on the host.
 */
export async function assertEachPhaseHasItsNetwork({
  kind,
  provider,
  channel = 'socket',
  gradedIn,
}: NetworkedRollout): Promise<void> {
  const { outside, port, server } = await startNamedNetwork('agent.test', 'tests.test');
  const rollouts = await startRollouts((home) => ({
    ...(provider !== undefined && { provider }),
    channel,
    taskRoots: [home],
    network: { cap: 'allowlist', outside },
  }));
  try {
    const directory = join(rollouts.home, 'fetch');
    await writeNetworkedTask(directory, { port, ...(gradedIn !== undefined && { gradedIn }) });
    const task = `harbor:${directory}`;
    const result = await rollouts.run('fetch', { task, agent: 'oracle', sandbox: kind });
    const { verdict, network } = result;
    const log = verdict === null ? 'none' : Buffer.from(await rollouts.store.get(verdict.log.digest)).toString();
    assert.deepEqual([result.outcome, result.reward], ['scored', 1], `${JSON.stringify(result)}\n${log}`);
    const rowsOf = async (use: NetworkUse | undefined): Promise<readonly string[]> => {
      const text = Buffer.from(await rollouts.store.get(use?.log.digest ?? '')).toString();
      const rows: readonly Record<string, unknown>[] = JSON.parse(text);
      return rows.map(({ phase, decision, host, requests }) => `${phase} ${decision} ${host} ${requests}`);
    };
    const refusedLast = ['agent allowed agent.test 1', 'agent host-refused tests.test 1'];
    assert.deepEqual(await rowsOf(network), refusedLast);
    const refusedFirst = ['tests host-refused agent.test 1', 'tests allowed tests.test 1'];
    assert.deepEqual(await rowsOf(verdict?.network), refusedFirst);
    // The reference solution, which is the agent here, names both hosts.
    const [flag, ...others] = network?.flags ?? [];
    assert.deepEqual([flag?.trick, others], ['solution-host', []]);
    assert.match(flag?.evidence ?? '', /^\d+ bytes from agent\.test in 1 request$/);
    assert.deepEqual(await readdir(join(rollouts.home, 'egress')).catch(() => []), []);
  } finally {
    await rollouts.close();
    server.close();
  }
}
