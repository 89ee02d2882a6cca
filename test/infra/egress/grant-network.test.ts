import assert from 'node:assert/strict';
import { it } from 'node:test';
import { grantNetwork, networkLacks } from '../../../infra/egress/grant-network.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type NetworkMode, networkModes, setUpNeeds } from '../../../workflows/contracts/network.ts';
import type { Task } from '../../../workflows/contracts/task.ts';

const offline: Task = {
  id: 'fetch',
  bundle: { digest: '0'.repeat(64), size: 1, mediaType: 'application/x-tar' },
  image: 'any',
  workdir: '/workspace',
  agentTimeoutSec: null,
  evaluationTimeoutSec: null,
  cpus: 1,
  memoryMb: 64,
  diskMb: 64,
};
const policyOf = (mode: NetworkMode) => ({ mode, hosts: mode === 'allowlist' ? ['pypi.test'] : [], ports: [443] });

for (const [field, who] of [
  ['network', 'agent'],
  ['testNetwork', 'tests'],
] as const) {
  it(`a task whose ${who} need more network than the operator allows is refused, with the setting to change`, () => {
    const allows = (mode: NetworkMode, cap: NetworkMode): boolean => {
      const task = { ...offline, [field]: policyOf(mode) };
      try {
        assert.deepEqual(grantNetwork(task, cap), task);
        return true;
      } catch (error) {
        assert.ok(error instanceof TemperFailure);
        assert.equal(error.type, 'UnsupportedTask');
        const text = `task fetch: its ${who} needs? TEMPER_NETWORK=${mode}, and this stack has TEMPER_NETWORK=${cap}; set TEMPER_NETWORK=`;
        assert.match(error.message, new RegExp(text));
        return false;
      }
    };
    const allowed = networkModes.map((cap) => networkModes.filter((mode) => allows(mode, cap)));
    assert.deepEqual(allowed, [['none'], ['none', 'allowlist'], ['none', 'allowlist', 'public']]);
  });
}

it('an optional network is granted or left out, and is needed from then on', () => {
  const task: Task = { ...offline, testNetwork: { ...policyOf('public'), optional: true } };
  assert.deepEqual(grantNetwork(task, 'allowlist'), offline);
  assert.deepEqual(grantNetwork(task, 'public'), { ...offline, testNetwork: policyOf('public') });
  assert.deepEqual(grantNetwork(offline, 'none'), offline);
});

it('a task whose tests download needs the network that they have by default, and the refusal names every choice', () => {
  const neededFor = 'tests/test.sh:3: pip install pytest';
  const task: Task = { ...offline, testNetwork: { ...policyOf('public'), neededFor } };
  assert.deepEqual(grantNetwork(task, 'public'), { ...offline, testNetwork: policyOf('public') });
  for (const cap of ['none', 'allowlist'] as const) {
    assert.deepEqual(networkLacks(task, cap), [{ who: 'tests', step: null, mode: 'public', cap, neededFor }]);
    assert.throws(() => grantNetwork(task, cap), {
      type: 'UnsupportedTask',
      message:
        `task fetch: its tests need TEMPER_NETWORK=public (${neededFor}), and this stack has TEMPER_NETWORK=${cap}; ` +
        'set TEMPER_NETWORK=public for the control worker and the hosts, run its tests without a ' +
        'network all the same (--offline-tests, settings.offlineTests), or leave the task out (--leave-out, leaveOut)',
    });
  }
});

it('a task whose set-up downloads is refused with the remark that no setting gives it a network', () => {
  const neededFor = `${setUpNeeds}npm ci`;
  const task: Task = { ...offline, testNetwork: { ...policyOf('public'), neededFor } };
  const message =
    /\(set-up, which never has a network: npm ci\), and this stack has TEMPER_NETWORK=none; put what the set-up downloads into the image, run its/;
  assert.throws(() => grantNetwork(task, 'none'), { type: 'UnsupportedTask', message });
});

it('the networks of steps are granted like those of the whole task', () => {
  const steps = [
    { name: 'look', network: policyOf('public') },
    { name: 'work', network: policyOf('none') },
  ];
  const task: Task = { ...offline, network: policyOf('allowlist'), steps };
  assert.deepEqual(grantNetwork(task, 'public'), task);
  const message =
    /task fetch, step look: its agent needs TEMPER_NETWORK=public, and this stack has TEMPER_NETWORK=allowlist/;
  assert.throws(() => grantNetwork(task, 'allowlist'), { type: 'UnsupportedTask', message });
});
