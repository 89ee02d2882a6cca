import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';

/** Starts a server that outlives the script, and waits until it answers. */
const solve = `echo right >/tmp/answer
setsid python3 -m http.server 8123 --bind 127.0.0.1 --directory /tmp </dev/null >/dev/null 2>&1 &
until python3 -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:8123/answer")' 2>/dev/null; do sleep 0.1; done`;
const test = `echo 0 >/logs/verifier/reward.txt
python3 -c 'import urllib.request as r; assert r.urlopen("http://127.0.0.1:8123/answer").read() == b"right\\n"' && echo 1 >/logs/verifier/reward.txt
`;

it('lets tests reach a service that the agent left, if the task says so', async () => {
  const rollouts = await startRollouts((home) => ({
    taskRoots: [join(home, 'tasks')],
    provider: createDockerProvider({ stack: 'test-stack' }),
  }));
  try {
    const run = async (name: string, grading: string) => {
      const toml = `[environment]\ndocker_image = "temper-tasks:bookworm"\nmemory_mb = 512\nstorage_mb = 256\n[grading]\nsandbox = "same"\n${grading}`;
      const task = await writeHarborTask(join(rollouts.home, 'tasks'), name, { solve, test, toml });
      return rollouts.run(name, { task, agent: 'oracle', sandbox: 'docker' });
    };
    const [kept, ended] = await Promise.all([run('kept', 'keep_processes = true\n'), run('ended', '')]);
    assert.deepEqual([kept.outcome, kept.reward], ['scored', 1], JSON.stringify(kept));
    assert.deepEqual([ended.outcome, ended.reward], ['scored', 0], JSON.stringify(ended));
  } finally {
    await rollouts.close();
  }
});
