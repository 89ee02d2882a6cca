import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { WorkflowFailedError } from '@temporalio/client';
import { createTasks } from '../../infra/tasks/tasks.ts';
import { rootMessage } from '../../workflows/contracts/error-message.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutRequest } from '../../workflows/contracts/rollout.ts';
import type { RunRequest } from '../../workflows/contracts/run.ts';
import type { SweepReport, SweepRequest, SweepResult } from '../../workflows/contracts/sweep.ts';
import { trainAllBranches } from '../../workflows/contracts/trace.ts';
import { listenInNetwork, loopbackNetwork, ownAddress } from '../helpers/egress/loopback-network.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

/** A host whose name leads to its server by some of the lookups only. */
interface Mirror {
  lookups: number;
  isFound(lookup: number): boolean;
  /** The addresses that the other lookups give. */
  otherwise: readonly string[];
}
/** An address that no sandbox may reach. */
const privateAddress = '10.1.2.3';

describe('tests whose host cannot be reached', () => {
  const server = createServer((_request, response) => response.end('ok'));
  const mirror: Mirror = { lookups: 0, isFound: () => true, otherwise: [] };
  let rollouts: Rollouts;
  let port = 0;
  before(async () => {
    port = await listenInNetwork(server);
    const fixed = loopbackNetwork({});
    const resolve = async (host: string): Promise<readonly string[]> => {
      if (host === 'inner.test') return [privateAddress];
      if (host !== 'mirror.test') return [];
      mirror.lookups += 1;
      return mirror.isFound(mirror.lookups) ? [ownAddress] : mirror.otherwise;
    };
    rollouts = await startRollouts((home) => ({
      taskRoots: [home],
      network: { cap: 'allowlist', outside: { ...fixed, resolve } },
    }));
  });
  after(async () => {
    await rollouts.close();
    server.close();
  });

  interface Attempt {
    readonly agent: 'oracle' | 'nop';
    readonly isFound?: Mirror['isFound'];
    readonly otherwise?: readonly string[];
    /** The program of the workspace before the agent changes it. */
    readonly work?: string;
    /** Statements with which the tests begin. */
    readonly first?: string;
  }

  /** Rolls out a task whose tests fetch something, as those do that install what they need. */
  async function roll(
    name: string,
    { agent, isFound = () => true, otherwise = [], work = 'done = False', first = '' }: Attempt,
    id = name,
  ) {
    Object.assign(mirror, { lookups: 0, isFound, otherwise });
    const files = {
      'task.toml': `[environment]
docker_image = "temper-tasks:bookworm"
[verifier]
network_mode = "allowlist"
allowed_hosts = ["mirror.test", "gone.test", "inner.test"]
allowed_ports = [${port}]
[grading]
sandbox = "fresh"
`,
      'instruction.md': 'Do it.',
      'environment/workspace/work.py': `${work}\n`,
      'solution/solve.sh': `echo 'done = True' >work.py\n`,
      'tests/test.sh': 'python3 /tests/tests.py; echo $((1 - $?)) >/logs/verifier/reward.txt\n',
      'tests/tests.py': `import sys, urllib.request
def fetch(host):
    try:
        return urllib.request.urlopen(f'http://{host}:${port}/', timeout=120).read()
    except OSError:
        return b''
sys.path.insert(0, '.')
sys.modules['tests'] = sys.modules['__main__']
${first}
import work
sys.exit(0 if fetch('mirror.test') == b'ok' and work.done else 1)
`,
    };
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(rollouts.home, name, path)), { recursive: true });
      await writeFile(join(rollouts.home, name, path), content);
    }
    const { outcome, reward } = await rollouts.run(id, {
      task: `harbor:${join(rollouts.home, name)}`,
      agent,
      sandbox: 'local',
    });
    return { outcome, reward, runs: mirror.lookups };
  }

  it('are repeated as long as the reference solution fails for it, too', async () => {
    const result = await roll('outage', { agent: 'oracle', isFound: (lookup) => lookup > 4 });
    // Two attempts, each of the agent's work and of the reference solution, and one that reaches it.
    assert.deepEqual(result, { outcome: 'scored', reward: 1, runs: 5 });
  });

  it('are repeated as long as its name leads to a private address', async () => {
    const outage = { agent: 'oracle', isFound: (lookup: number) => lookup > 2, otherwise: [privateAddress] } as const;
    assert.deepEqual(await roll('private', outage), { outcome: 'scored', reward: 1, runs: 3 });
  });

  it('run again if the reference solution reaches it', async () => {
    const result = await roll('hiccup', { agent: 'oracle', isFound: (lookup) => lookup > 1 });
    assert.deepEqual(result, { outcome: 'scored', reward: 1, runs: 3 });
  });

  it('count if they pass without it', async () => {
    const attempt = { agent: 'nop', first: "fetch('gone.test')" } as const;
    assert.deepEqual(await roll('telemetry', attempt), { outcome: 'scored', reward: 0, runs: 2 });
    // The reference solution is not asked again.
    assert.deepEqual(await roll('telemetry', attempt, 'again'), { outcome: 'scored', reward: 0, runs: 1 });
  });

  it('count if the code under test asked for it', async () => {
    for (const host of ['gone.test', 'inner.test']) {
      const work = `from tests import fetch; fetch('${host}'); done = False`;
      const result = await roll(`excuse-${host}`, { agent: 'nop', work });
      assert.deepEqual(result, { outcome: 'scored', reward: 0, runs: 2 });
    }
  });

  describe('and that download', () => {
    /** Tests that install something, which they can do without. */
    const test = 'pip install nothing-of-that-name\ngrep -c right /workspace/answer.txt >/logs/verifier/reward.txt\n';
    const run = async (id: string, request: Partial<RolloutRequest> = {}) => {
      const address = await writeHarborTask(rollouts.home, 'downloads', { test });
      return rollouts.run(id, { task: address, agent: 'oracle', sandbox: 'local', ...request });
    };

    it('are refused before the start, with the command and every choice', async () => {
      const { outcome, reward, failure, stageSeconds } = await run('refused');
      assert.deepEqual([outcome, reward, failure?.type], ['invalid-task', null, 'UnsupportedTask']);
      const { message = '' } = failure ?? {};
      assert.match(
        message,
        /need TEMPER_NETWORK=public \(tests\/test\.sh:2: pip install nothing-of-that-name\), and this stack has TEMPER_NETWORK=\w+; set TEMPER_NETWORK=public/,
      );
      assert.match(
        message,
        /--offline-tests, settings\.offlineTests\), or leave the task out \(--leave-out, leaveOut\)$/,
      );
      assert.deepEqual(Object.keys(stageSeconds), ['resolveTask']);
    });

    it('run without a network if the user says so, which the result records', async () => {
      const { outcome, reward, offlineTests, verdict } = await run('offline', { offlineTests: true });
      assert.deepEqual([outcome, reward, offlineTests], ['scored', 1, true]);
      assert.equal(verdict?.network, undefined);
    });

    /** Writes a set of a task whose tests download, and one whose tests do not. */
    const writeSet = async (): Promise<string> => {
      const root = join(rollouts.home, 'set');
      await writeHarborTask(root, 'downloads', { test });
      await writeHarborTask(root, 'plain', {});
      return `harbor:${root}`;
    };
    const sweep = async (workflowId: string, request: Partial<SweepRequest>): Promise<SweepReport> => {
      const settings = { agent: 'oracle', sandbox: 'local', ...request.settings } as const;
      const args: [SweepRequest] = [{ tasks: await writeSet(), ...request, settings }];
      const start = { taskQueue: controlQueue, workflowId, args };
      const { report }: SweepResult = await rollouts.client.workflow.execute('evaluationSweep', start);
      return (await rollouts.store.getJson(report.digest)) as SweepReport;
    };
    const refusal =
      /set: 1 of 2 tasks need a network that TEMPER_NETWORK does not allow, for example downloads: .*test\.sh:2: pip/;

    it('refuse a run and a sweep, which start nothing', async () => {
      await assert.rejects(sweep('refused-sweep', {}), (error: WorkflowFailedError) =>
        refusal.test(rootMessage(error)),
      );
      const args: [RunRequest] = [{ tasks: await writeSet(), settings: { agent: 'mini' } }];
      const start = { taskQueue: controlQueue, workflowId: 'refused-run', args };
      const run = rollouts.client.workflow.execute('trainingRun', start);
      await assert.rejects(run, (error: WorkflowFailedError) => refusal.test(rootMessage(error)));
      assert.deepEqual(await rollouts.sandboxes(), []);
    });

    it('are left out of a sweep if the user says so, which its report counts', async () => {
      const { result, lacking, taskScores } = await sweep('left-out', { leaveOut: true });
      assert.deepEqual([result.tasks, result.counted, taskScores.length], [1, 1, 1]);
      assert.deepEqual(result.tasksLeftOut, { quarantined: 0, network: 1 });
      assert.match(lacking[0]?.why ?? '', /^downloads: its tests need TEMPER_NETWORK=public/);
    });

    it('are in a sweep whose tests all run without a network, which its report says', async () => {
      const { result, lacking, input } = await sweep('offline-sweep', { settings: { offlineTests: true } });
      assert.deepEqual([result.tasks, result.counted, lacking, input.settings.offlineTests], [2, 2, [], true]);
    });

    it('are refused on the host, too, if a command has packed their task itself', async () => {
      const address = await writeHarborTask(rollouts.home, 'packed', { test });
      const dataSets = { directory: rollouts.home, offline: true };
      const tasks = createTasks({ store: rollouts.store, roots: [rollouts.home], dataSets });
      const task = { task: await tasks.resolve(address), usesModel: false, branches: trainAllBranches };
      const { outcome, failure } = await run('packed', { task });
      assert.deepEqual(
        [outcome, failure?.type, failure?.stage],
        ['invalid-task', 'UnsupportedTask', 'provisionSandbox'],
      );
      assert.equal((await run('packed-offline', { task, offlineTests: true })).outcome, 'scored');
    });
  });
});
