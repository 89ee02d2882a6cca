import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { answerTest, writeHarborTask } from '../helpers/tasks/harbor-task.ts';

const bomb = 'bomb() { bomb | bomb & }; bomb; while :; do :; done';
/**
 * The last command of an agent that has solved its task, and the reason why that stops it. A sandbox has 512 MB of memory and
 * 256 MB of disk.
 */
const cases: readonly { name: string; last: string; timeoutSec?: number; stop: RolloutResult['stop'] }[] = [
  { name: 'exceeds its memory', last: 'dd if=/dev/zero of=/dev/null bs=1G count=1', stop: 'memory-limit' },
  { name: 'fills its disk', last: 'head -c 1G /dev/zero > /tmp/big; sleep 600', stop: 'disk-limit' },
  { name: 'starts a fork bomb', last: bomb, timeoutSec: 15, stop: 'deadline' },
];

describe('an agent that solves its task in a container and then', () => {
  let rollouts: Rollouts;
  const provider = createDockerProvider({ stack: 'test-stack' });

  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')], provider }));
  });
  after(() => rollouts?.close());

  for (const [index, { name, last, timeoutSec = 300, stop }] of cases.entries()) {
    it(`${name} stops with ${stop}, is scored by its work, and leaves no sandbox behind`, async () => {
      const task = await writeHarborTask(join(rollouts.home, 'tasks'), `limit-${index}`, {
        solve: `echo right > answer.txt; ${last}`,
        test: 'mkdir -p /logs/verifier; grep -c right /workspace/answer.txt > /logs/verifier/reward.txt',
      });
      const request = { task, agent: 'oracle', sandbox: 'docker', agentTimeoutSec: timeoutSec } as const;
      const result = await rollouts.run(`limit-${index}`, request);
      assert.deepEqual([result.outcome, result.stop, result.reward], ['scored', stop, 1], JSON.stringify(result));
      const left = await provider.list('test-stack');
      assert.deepEqual(
        left.filter((one) => one.name.includes(result.rollout)),
        [],
      );
    });
  }

  it('leaves a fork bomb to its tests keeps them from any reward', async () => {
    // The kernel may end any of their processes for want of memory, so the bomb is started again and again.
    const test = `while :; do sh /workspace/bomb.sh; done; ${answerTest}`;
    const solve = `echo right > answer.txt; echo '${bomb}' > bomb.sh`;
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'left-bomb', { solve, test });
    const request = { task, agent: 'oracle', sandbox: 'docker', evaluationTimeoutSec: 5 } as const;
    const { outcome, reward, verdict } = await rollouts.run('left-bomb', request);
    assert.deepEqual([outcome, reward], ['scored', 0]);
    // Mostly `timeout`; the shell of the tests may be what the kernel ends.
    assert.ok(['timeout', 'no-reward'].includes(verdict?.kind ?? ''), verdict?.kind);
  });
});
