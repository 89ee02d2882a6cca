import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { listenInNetwork, loopbackNetwork, ownAddress } from '../helpers/egress/loopback-network.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';

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
});
