import { Context } from '@temporalio/activity';
import { evaluate } from '../../infra/grading/evaluate.ts';
import { evaluateInPlace } from '../../infra/grading/evaluate-in-place.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { EvaluationActivities, HostActivities } from '../interfaces/host.ts';
import { attachAgentSandbox, type Host } from './host.ts';
import { createTestNetworks } from './network.ts';

export function createEvaluation(host: Host): EvaluationActivities {
  const networked = { ...host, testNetwork: createTestNetworks(host) };
  return {
    evaluate: (input) =>
      joinAtBoundary((signal, report) =>
        evaluate(networked, input, { number: Context.current().info.attempt, report }, signal),
      ),
  };
}

/** Creates the evaluation in agents' own sandboxes, which hold the agents' slots until then. */
export function createEvaluationInPlace(host: Host): Pick<HostActivities, 'evaluateInPlace'> {
  const networked = { ...host, testNetwork: createTestNetworks(host) };
  return {
    evaluateInPlace: (input) =>
      joinAtBoundary(async (signal, report) => {
        const { attempt: number } = Context.current().info;
        const sandbox = await attachAgentSandbox(host, input);
        const secret = host.secretOf(sessionId(input.epoch));
        return evaluateInPlace(networked, input, { sandbox, secret, number, report }, signal);
      }),
  };
}
