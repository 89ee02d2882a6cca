import { it } from 'node:test';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { assertEachPhaseHasItsNetwork } from '../helpers/egress/networked-rollout.ts';

const dockerRollout = () => ({ kind: 'docker', provider: createDockerProvider({ stack: 'test-stack' }) }) as const;

for (const channel of ['socket', 'stream'] as const) {
  it(`agents without a model and tests in a fresh container have networks of their own by ${channel}`, () =>
    assertEachPhaseHasItsNetwork({ ...dockerRollout(), channel }));

  it(`tests in the agent's container have another network than the agent by ${channel}`, () =>
    assertEachPhaseHasItsNetwork({ ...dockerRollout(), channel, gradedIn: 'same' }));
}
