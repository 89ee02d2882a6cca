import { it } from 'node:test';
import { assertEachPhaseHasItsNetwork } from '../helpers/egress/networked-rollout.ts';

it('agents without a model and tests in a fresh local sandbox have networks of their own', () =>
  assertEachPhaseHasItsNetwork({ kind: 'local' }));

it("tests in the agent's local sandbox have another network than the agent", () =>
  assertEachPhaseHasItsNetwork({ kind: 'local', gradedIn: 'same' }));
