import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { createRandom } from '../../infra/random.ts';
import type { SandboxKind } from '../../infra/sandbox/sandbox.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { type ClientConnection, connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import type { SweepResult } from '../../workflows/contracts/sweep.ts';
import { countEnded, type EndedRollout, readRollouts, startLoadSweep } from '../helpers/rollouts/load-sweep.ts';
import { createSleepingAgents, type SleepingAgents } from '../helpers/rollouts/sleeping-agents.ts';
import { type DaemonProxy, startDaemonProxy } from '../helpers/sandbox/daemon-proxy.ts';
import { listSandboxes, removeSandboxes } from '../helpers/sandbox/stack-sandboxes.ts';
import { until } from '../helpers/until.ts';

/** A number of agents that end together on one host. */
export interface Load {
  readonly sandbox: SandboxKind;
  /** The number in CI. By hand, TEMPER_TEST_LOAD_AGENTS replaces it. */
  readonly agents: number;
  /** The width of the host's lanes. */
  readonly lanes: number;
  /** Whether the host worker is killed while the agents' work is captured, released and evaluated. */
  readonly killsHost?: true;
  /** The calls of the Docker daemon that are delayed. */
  readonly delays?: { readonly share: number; readonly ms: number };
}

const sweepId = 'load';
/** The time that a busy machine may take for everything: a minute less than the limit of a test. */
const limitMs = (Number(process.env.TEMPER_TEST_MINUTES ?? 15) - 1) * 60_000;

interface Ended {
  readonly result: SweepResult;
  readonly rollouts: readonly EndedRollout[];
  /** The time at which the host worker was gone. */
  readonly goneAtMs: number;
}

/** Describes agents that sleep until all are at work, and end together. */
export const describeLoad = (what: string, load: Load): void => {
  const agents = Number(process.env.TEMPER_TEST_LOAD_AGENTS ?? load.agents);
  describe(`${agents} agents in ${load.sandbox} sandboxes that end together ${what}`, () => suite({ ...load, agents }));
};

function suite(load: Load): void {
  const { sandbox, agents, lanes, killsHost = false } = load;
  let home: string;
  let config: Config;
  let stack: RunningStack;
  let server: ClientConnection;
  let daemon: DaemonProxy | undefined;
  let ended: Ended;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-load-'));
    daemon = load.delays && (await startSlowDaemon(home, load.delays));
    config = await configFor(home, load, daemon?.address);
    const signal = AbortSignal.timeout(limitMs);
    stack = await startStack({ config, parts: ['temporal', 'control', 'host'] }, signal);
    server = await connectClient(temporalTarget(config));
    const sleeping = await createSleepingAgents(join(home, 'tasks'));
    const sweep = { task: sleeping.task, sandbox, attempts: agents, concurrency: agents };
    const handle = await startLoadSweep(server.client, sweepId, sweep);
    await sleeping.untilAsleep(agents, signal);
    const goneAtMs = killsHost ? await killHostAmidWork(server.client, sleeping) : 0;
    if (!killsHost) assert.equal(sleeping.wake(), agents);
    const result = await handle.result();
    ended = { result, goneAtMs, rollouts: await readRollouts(server.client, sweepId) };
  });
  after(async () => {
    await server?.close();
    await stack?.close();
    await daemon?.close();
    if (stack !== undefined) await removeSandboxes(config);
    await rm(home, { recursive: true, force: true });
  });

  const hostPid = (): number | null => stack.parts().find(({ name }) => name === 'host')?.pid ?? null;

  /**
   * Wakes the agents, and kills the host worker when some rollouts have ended and the others wait for their stages; returns when it
   * was gone. The last agents end when it stands still already: however fast the others are, the kill interrupts something.
   */
  async function killHostAmidWork(client: Client, sleeping: SleepingAgents): Promise<number> {
    const first = Math.ceil((2 * agents) / 3);
    assert.equal(sleeping.wake(first), first);
    await until(async () => (await countEnded(client, sweepId)) >= agents / 10, limitMs);
    const pid = hostPid() ?? assert.fail('the host worker does not run');
    process.kill(pid, 'SIGSTOP');
    assert.equal(sleeping.wake(), agents - first);
    process.kill(pid, 'SIGKILL');
    await until(() => hostPid() !== pid);
    const goneAtMs = Date.now();
    await until(() => hostPid() !== null, limitMs);
    return goneAtMs;
  }

  const triedAgain = () => ended.rollouts.flatMap(({ stages }) => stages).filter(({ attempt }) => attempt !== 1);

  it('scores every rollout once, by what its agent did', () => {
    assert.deepEqual([ended.result.outcomes.scored, ended.result.counted], [agents, agents]);
    assert.equal(ended.rollouts.length, agents);
    for (const { outcome, reward, stop, epochs, failure, workflowId } of ended.rollouts) {
      const got = [outcome, reward, stop, epochs];
      assert.deepEqual(got, ['scored', 1, 'submitted', 1], `${workflowId} ${JSON.stringify(failure)}`);
    }
  });

  if (killsHost) {
    it('tries again only stages that ran when the host worker was killed, and each of them once', () => {
      const again = triedAgain();
      assert.ok(again.length > 0, 'expected the kill to interrupt some stage');
      for (const stage of again) {
        assert.equal(stage.attempt, 2, JSON.stringify(stage));
        assert.ok(stage.scheduledAtMs < ended.goneAtMs, JSON.stringify(stage));
      }
      // What waited in the queue of a lane did not run.
      for (const stage of ['captureDiff', 'releaseSandbox', 'evaluate']) {
        const interrupted = again.filter((one) => one.stage === stage);
        assert.ok(interrupted.length <= lanes, `${interrupted.length} of ${stage}`);
      }
    });
  } else {
    it('tries no stage twice', () => {
      assert.deepEqual(triedAgain(), []);
    });
  }

  it('leaves no sandbox behind', async () => {
    assert.deepEqual(await listSandboxes(config, sandbox), []);
  });
}

/** Starts a proxy before the Docker daemon that delays some calls, chosen at random by a seed that it prints. */
function startSlowDaemon(directory: string, { share, ms }: NonNullable<Load['delays']>): Promise<DaemonProxy> {
  const seed = process.env.TEMPER_TEST_LOAD_SEED ?? randomUUID();
  console.log(`delays ${share * 100} % of the daemon's calls by ${ms} ms, with TEMPER_TEST_LOAD_SEED=${seed}`);
  const random = createRandom(seed);
  return startDaemonProxy(directory, async () => {
    if (random.unit() < share) await sleep(ms);
  });
}

async function configFor(home: string, { sandbox, agents, lanes }: Load, daemon?: string): Promise<Config> {
  return readConfig({
    ...process.env,
    ...(daemon !== undefined && { DOCKER_HOST: daemon }),
    TEMPORAL_ADDRESS: undefined,
    TEMPER_HOME: home,
    TEMPER_SANDBOX: sandbox,
    TEMPER_HOST: `load-${sandbox}`,
    TEMPER_TASK_ROOTS: join(home, 'tasks'),
    TEMPER_CAPACITY: String(agents),
    TEMPER_LANES: String(lanes),
    TEMPER_EVALUATIONS: String(lanes),
    TEMPER_TEMPORAL_PORT: String(await freePort()),
    TEMPER_UI_PORT: String(await freePort()),
  });
}
