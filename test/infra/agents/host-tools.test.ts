import assert from 'node:assert/strict';
import { it } from 'node:test';
import { hostToolsOf } from '../../../infra/agents/host-tools.ts';

const agent = { name: 'mine', usesModel: true, takesHostTools: true };
const task = { id: 'sum', hostTools: ['answer'] };

it('a rollout has the host tools of its settings, or else those of its task', () => {
  assert.deepEqual(hostToolsOf(agent, task, undefined), ['answer']);
  assert.deepEqual(hostToolsOf(agent, task, ['submit', 'answer']), ['submit', 'answer']);
  assert.deepEqual(hostToolsOf(agent, { id: 'sum' }, undefined), []);
  assert.deepEqual(hostToolsOf({ name: 'oracle', usesModel: false }, task, ['submit']), []);
});

it('a rollout without a host tool that its task needs, or with an agent that calls none, is refused', () => {
  assert.throws(() => hostToolsOf(agent, task, ['submit']), {
    type: 'UnsupportedTask',
    message: /task sum asks for the host tool answer, which hostTools of the settings leaves out/,
  });
  assert.throws(() => hostToolsOf({ name: 'mine', usesModel: true }, task, undefined), {
    type: 'UnsupportedTask',
    message: /agent mine cannot call host tools, and the rollout has answer/,
  });
});
