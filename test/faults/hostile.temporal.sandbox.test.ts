import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { flagsOfRollout } from '../../workflows/algorithms/flags.ts';
import type { Trick } from '../../workflows/contracts/flags.ts';
import type { RolloutRequest, RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { answerTest, type HarborTaskFiles, writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { until } from '../helpers/until.ts';

interface Case {
  readonly name: string;
  readonly files: HarborTaskFiles;
  readonly request?: Partial<RolloutRequest>;
  /** Outcome, reward, and the type of the failure or kind of the verdict. */
  readonly ends: readonly [RolloutResult['outcome'], number | null, string];
  /** Paths that the verdict reports as restored. */
  readonly restored?: readonly string[];
  /** Tricks that its result is flagged with. */
  readonly flags?: readonly Trick[];
}

const inRepository =
  'version = "1.0"\n[environment]\ndocker_image = "temper-tasks:bookworm"\n[grading]\ntests_in_repository = true\n';

const right = 'echo right > answer.txt';
const weighing =
  '[environment]\ndocker_image = "temper-tasks:bookworm"\n[verifier]\ntimeout_sec = 120.0\nreward_weights = { a = 3, b = 1 }\n';

/** Tests that run what the agent wrote, and then write their reward. */
const run = {
  workspace: { 'answer.txt': 'true\n' },
  test: 'bash answer.txt; [ -f /logs/verifier/reward.txt ] || [ ! -e /logs/verifier/reward.txt ] && echo 0 > /logs/verifier/reward.txt',
};

const cases: readonly Case[] = [
  {
    name: 'a malformed task.toml',
    files: { toml: 'version = "1.0"\n[agent\n' },
    ends: ['invalid-task', null, 'MalformedTask'],
  },
  {
    name: 'a wrong field in task.toml',
    files: { toml: 'version = "1.0"\n[agent]\ntimeout_sec = "long"\n' },
    ends: ['invalid-task', null, 'MalformedTask'],
  },
  {
    name: 'tests that hang',
    files: { test: 'sleep 600' },
    request: { evaluationTimeoutSec: 2 },
    ends: ['scored', 0, 'timeout'],
  },
  {
    name: 'tests that print 100 MB',
    files: { test: `head -c 100000000 /dev/zero | tr '\\0' x\n${answerTest}` },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'tests that write nan',
    files: { test: 'echo nan > /logs/verifier/reward.txt' },
    ends: ['invalid-task', null, 'InvalidReward'],
  },
  {
    name: 'tests that write 2',
    files: { test: 'echo 2 > /logs/verifier/reward.txt' },
    ends: ['invalid-task', null, 'InvalidReward'],
  },
  {
    name: 'tests that write several scores without weights',
    files: { test: `echo '{"a": 1, "b": 1}' > /logs/verifier/reward.json` },
    ends: ['invalid-task', null, 'InvalidReward'],
  },
  {
    name: 'tests that write several scores which the task weights',
    files: {
      toml: weighing,
      test: `echo 0 > /logs/verifier/reward.txt; echo '{"a": 1, "b": 0.5, "c": 0}' > /logs/verifier/reward.json`,
    },
    ends: ['scored', 0.875, 'graded'],
  },
  {
    name: 'tests that write no score which the task weights',
    files: { toml: weighing, test: `echo '{"b": 1}' > /logs/verifier/reward.json` },
    ends: ['invalid-task', null, 'InvalidReward'],
  },
  {
    name: 'a solution that makes the tests write nan',
    files: {
      workspace: { 'answer.txt': '0\n' },
      test: 'cat /workspace/answer.txt > /logs/verifier/reward.txt',
      solve: 'echo nan > answer.txt',
    },
    ends: ['scored', 0, 'no-reward'],
    flags: ['reward-file'],
  },
  {
    name: 'a solution that makes the tests write no score which the task weights',
    files: {
      toml: weighing,
      workspace: { 'answer.txt': '{"a": 0, "b": 0}\n' },
      test: 'cat /workspace/answer.txt > /logs/verifier/reward.json',
      solve: 'echo "{}" > answer.txt',
    },
    ends: ['scored', 0, 'no-reward'],
    flags: ['reward-file'],
  },
  {
    name: 'tests that write nan, and an agent that does nothing',
    files: { test: 'echo nan > /logs/verifier/reward.txt' },
    request: { agent: 'nop' },
    ends: ['invalid-task', null, 'InvalidReward'],
  },
  {
    name: 'tests that need a program which this host lacks',
    files: { test: 'if temper-has-no-such-runner; then echo 1; else echo 0; fi > /logs/verifier/reward.txt' },
    ends: ['infra', null, 'MissingProgram'],
  },
  {
    name: 'a set-up that writes different files each time',
    files: { setup: ['date +%s%N > stamp'] },
    ends: ['invalid-task', null, 'SetupFailed'],
  },
  {
    name: 'a solution that puts a directory in place of its reward',
    files: { ...run, solve: 'echo mkdir /logs/verifier/reward.txt > answer.txt' },
    ends: ['scored', 0, 'no-reward'],
    flags: ['claimed-fault'],
  },
  {
    name: 'a solution that puts a pipe in place of its reward',
    files: { ...run, solve: 'echo mkfifo /logs/verifier/reward.txt > answer.txt' },
    ends: ['scored', 0, 'no-reward'],
    flags: ['claimed-fault'],
  },
  { name: 'tests that write nothing', files: { test: 'exit 3' }, ends: ['invalid-task', null, 'BrokenTests'] },
  { name: 'an agent that deletes .git', files: { solve: `rm -rf .git; ${right}` }, ends: ['scored', 1, 'graded'] },
  {
    name: 'an agent that commits its work',
    files: { solve: `${right}; git add -A; git -c user.name=a -c user.email=a@b commit -qm done` },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'an agent whose repository runs hooks',
    files: { solve: `git config core.fsmonitor 'echo wrong > answer.txt; false'; ${right}` },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'an agent that makes its work unreadable',
    files: { solve: `${right}; chmod 000 answer.txt` },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'an agent that makes its workspace private',
    files: { solve: `${right}; chmod 700 .` },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'an agent that kills every process it can reach',
    files: { solve: `${right}; kill -9 -1` },
    ends: ['scored', 1, 'graded'],
    flags: ['crash'],
  },
  {
    name: 'an agent that runs out of time',
    files: { solve: `${right}; sleep 600` },
    request: { agentTimeoutSec: 15 },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'an agent whose daemon would rewrite its work later',
    // Later than a capture on any machine: it is the end of the agent that ends the daemon.
    files: { solve: `${right}; (sleep 60; echo wrong > answer.txt) >/dev/null 2>&1 & disown` },
    ends: ['scored', 1, 'graded'],
  },
  {
    name: 'a diff of 50 MB',
    files: { solve: `${right}; head -c 50000000 /dev/urandom > big` },
    ends: ['scored', 0, 'patch-failed'],
    flags: ['bulk'],
  },
  {
    name: 'a link to the hidden tests',
    files: { solve: `${right}; ln -s /tests/test.sh link; ln -s ../logs/verifier up` },
    ends: ['scored', 1, 'graded'],
    flags: ['link'],
  },
  {
    name: 'a test of the repository that the agent rewrites',
    files: {
      toml: `${inRepository}protected = ["check.sh"]\n`,
      workspace: { 'check.sh': '[ "$(cat answer.txt)" = right ]\n', 'answer.txt': 'wrong\n' },
      test: 'cd /workspace && sh check.sh; passed=$((1 - $?)); mkdir -p /logs/verifier; echo $passed > /logs/verifier/reward.txt',
      solve: 'echo true > check.sh; echo x > conftest.py',
    },
    ends: ['scored', 0, 'graded'],
    restored: ['check.sh', 'conftest.py'],
    flags: ['tests', 'test-configuration'],
  },
  {
    name: 'a reward written by the agent',
    files: { solve: 'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt' },
    ends: ['scored', 0, 'graded'],
  },
];

describe('a rollout with', () => {
  let rollouts: Rollouts;

  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')] }));
  });
  after(() => rollouts?.close());

  for (const [index, { name, files, request, ends, restored, flags = [] }] of cases.entries()) {
    it(`${name} ends as ${ends.join(' ')}`, async () => {
      const task = await writeHarborTask(join(rollouts.home, 'tasks'), `task-${index}`, files);
      const result = await rollouts.run(`hostile-${index}`, { task, agent: 'oracle', ...request });
      const called = result.failure?.type ?? result.verdict?.kind;
      assert.deepEqual([result.outcome, result.reward, called], ends, JSON.stringify(result));
      assert.deepEqual(result.verdict?.restored?.paths, restored);
      assert.deepEqual(
        flagsOfRollout(result).map(({ trick }) => trick),
        flags,
      );
      assert.ok(JSON.stringify(result).length < 8192);
      assert.deepEqual(await rollouts.sandboxes(), []);
    });
  }

  it('whose evaluation loses its sandbox is evaluated again', async () => {
    const files = { solve: right, test: `until [ -e /tmp/go ]; do sleep 0.05; done\n${answerTest}` };
    const task = await writeHarborTask(join(rollouts.home, 'tasks'), 'removed', files);
    const result = rollouts.run('removed-evaluation', { task, agent: 'oracle' });
    const evaluation = async () =>
      (await rollouts.sandboxes()).find(({ labels }) => labels.purpose === 'evaluation')?.name;
    await until(async () => {
      const name = await evaluation();
      return name !== undefined && (await rollouts.provider.remove(name));
    });
    const ended = result.then(
      () => true,
      () => true,
    );
    await until(async () => {
      const name = await evaluation();
      if (name !== undefined) await letTestsEnd(name);
      return await Promise.race([ended, false]);
    });
    const { outcome, reward, epochs } = await result;
    assert.deepEqual([outcome, reward, epochs], ['scored', 1, 1], JSON.stringify(await result));
    assert.deepEqual(await rollouts.sandboxes(), []);
  });

  /** Writes the file for which the tests in a sandbox wait, if the sandbox is still there. */
  async function letTestsEnd(name: string): Promise<void> {
    const sandbox = await rollouts.provider.attach(name);
    const touch = { argv: ['touch', '/tmp/go'], cwd: '/', account: 'agent', env: {} } as const;
    const request = { ...touch, timeoutMs: 60_000, maxOutputBytes: 0 };
    await sandbox?.exec(request, AbortSignal.timeout(120_000)).catch(() => undefined);
  }
});
