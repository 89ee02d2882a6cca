import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { WorkflowFailedError } from '@temporalio/client';
import type { AgentModule } from '../../infra/agents/own-agents.ts';
import { packageVersion } from '../../infra/package-version.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';

/** A user's own agent, which writes one file. */
const writer: AgentModule = ({ z }) => ({
  name: 'writer',
  description: 'writes a file',
  usesModel: false,
  needsSolution: false,
  options: { text: z.string().default('').describe('What it writes.') },
  runtimes: async () => [],
  command: ({ options }) => ({
    argv: ['sh', '-c', `echo "$0" >written.txt`, String(options.text)],
    env: {},
    files: new Map(),
  }),
  stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
});

/** A module with a reward that pays for failing. */
const opposite = 'data:text/javascript,export default { name: "opposite", reward: ({ value }) => 1 - (value ?? 0) }';

describe('rollout', () => {
  let rollouts: Rollouts;

  before(async () => {
    rollouts = await startRollouts(() => ({ ownAgents: [{ from: 'a test', module: writer }], rewards: [opposite] }));
  });
  after(() => rollouts?.close());

  it('scores 1 for the reference solution and 0 for doing nothing', async () => {
    const task = 'generated:train/1/0';
    const [oracle, nop] = await Promise.all([
      rollouts.run('oracle', { task, agent: 'oracle' }),
      rollouts.run('nop', { task, agent: 'nop' }),
    ]);
    assert.deepEqual([oracle.outcome, oracle.reward], ['scored', 1], JSON.stringify(oracle));
    assert.deepEqual([nop.outcome, nop.reward], ['scored', 0], JSON.stringify(nop));
    assert.equal(nop.agentVersion, packageVersion());
    assert.ok(JSON.stringify(oracle).length < 8192);
    assert.deepEqual(await rollouts.sandboxes(), []);
  });

  it("has the reward of the operator's own function, and none of an unknown one", async () => {
    const task = 'generated:train/1/0';
    const by = (agent: string, rewardPolicy: string) =>
      rollouts.run(`${agent}-${rewardPolicy}`, { task, agent, rewardPolicy });
    const [oracle, nop, unknown] = await Promise.all([
      by('oracle', 'opposite'),
      by('nop', 'opposite'),
      by('nop', 'no'),
    ]);
    assert.deepEqual([oracle.outcome, oracle.reward], ['scored', 0], JSON.stringify(oracle));
    assert.deepEqual([nop.outcome, nop.reward], ['scored', 1], JSON.stringify(nop));
    const { outcome, reward, failure } = unknown;
    assert.deepEqual([outcome, reward, failure?.stage], ['invalid-task', null, 'resolveTask'], JSON.stringify(unknown));
    assert.match(failure?.message ?? '', /expected one of binary, fraction, fail-to-pass, opposite, got no/);
  });

  it('captures the diff and releases the sandbox in the activity that waits for the agent, and measures each stage', async () => {
    const { workflowId, outcome, stageSeconds } = await rollouts.run('at-once', {
      task: 'generated:train/1/0',
      agent: 'nop',
    });
    const { events } = await rollouts.client.workflow.getHandle(workflowId).fetchHistory();
    const activities = events?.map((event) => event.activityTaskScheduledEventAttributes?.activityType?.name);
    assert.deepEqual(activities?.filter(Boolean), ['placeRollout', 'provisionSandbox', 'awaitAgent', 'evaluate']);
    assert.equal(outcome, 'scored');
    for (const stage of ['startAgent', 'awaitAgent', 'captureDiff', 'releaseSandbox'] as const)
      assert.ok(stage in stageSeconds, stage);
  });

  it("runs a user's own agent with its options, and says so in the result", async () => {
    const input = { task: 'generated:train/1/0', agent: 'writer', agentOptions: { text: 'hello' } };
    const result = await rollouts.run('writer', input);
    const { outcome, reward, agent, agentOptions, stop, diff, failure } = result;
    assert.deepEqual([failure, outcome, reward, stop, diff?.files], [null, 'scored', 0, 'submitted', 1]);
    assert.deepEqual({ agent, agentOptions }, { agent: 'writer', agentOptions: { text: 'hello' } });
    const wrong = await rollouts.run('wrong', { ...input, agentOptions: { text: 1 } });
    assert.deepEqual(
      [wrong.outcome, wrong.failure?.type, wrong.failure?.stage],
      ['invalid-task', 'UnknownAgent', 'resolveTask'],
    );
    assert.match(wrong.failure?.message ?? '', /writer: text: .*, got 1; options of writer: text/);
  });

  it('refuses an invalid input at once, naming the field, what was expected and the value', async () => {
    const bad = rollouts.run('bad', { task: 'generated:train/1/0', maxTurns: 'many' } as never);
    await assert.rejects(bad, (error) => {
      assert.ok(error instanceof WorkflowFailedError);
      assert.match(String(error.cause), /maxTurns: expected a whole number from 1 to 100000 turns, got "many"/);
      return true;
    });
  });

  it('ends as invalid-task for an unknown task', async () => {
    const result = await rollouts.run('unknown', { task: 'harbor:/nowhere/task', agent: 'nop' });
    assert.equal(result.outcome, 'invalid-task');
    assert.equal(result.failure?.type, 'UnknownTask');
  });
});
