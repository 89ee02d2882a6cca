import { Context, log } from '@temporalio/activity';
import { evaluate } from '../../infra/grading/evaluate.ts';
import { evaluateInPlace } from '../../infra/grading/evaluate-in-place.ts';
import type { EvaluationHost } from '../../infra/grading/evaluation.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { EvaluationActivities, HostActivities } from '../interfaces/host.ts';
import { declineElsewhere } from './elsewhere.ts';
import { attachAgentSandbox, type Host } from './host.ts';
import { createTestNetworks } from './network.ts';
import { timed } from './timed.ts';

export function createEvaluation(host: Host): EvaluationActivities {
  const evaluating = evaluationHost(host);
  return {
    evaluate: (input) =>
      joinAtBoundary(async (signal, report) => {
        await declineElsewhere(host, input.sandbox);
        const { attempt: number } = Context.current().info;
        return timed(report, (told) => evaluate(evaluating, input, { number, report: told }, signal));
      }),
  };
}

/** Creates the evaluation in agents' own sandboxes, which hold the agents' slots until then. */
export function createEvaluationInPlace(host: Host): Pick<HostActivities, 'evaluateInPlace'> {
  const evaluating = evaluationHost(host);
  return {
    evaluateInPlace: (input) =>
      joinAtBoundary(async (signal, report) => {
        const { attempt: number } = Context.current().info;
        const sandbox = await attachAgentSandbox(host, input);
        const secrets = host.secretsOf(sessionId(input.epoch));
        const inPlace = (told: typeof report) =>
          evaluateInPlace(evaluating, input, { sandbox, secrets, number, report: told }, signal);
        return timed(report, inPlace);
      }),
  };
}

const evaluationHost = (host: Host): EvaluationHost => ({
  ...host,
  testNetwork: createTestNetworks(host),
  reportLeft: (sandbox, error) =>
    log.warn('could not remove the sandbox of an evaluation; the reaper does it', { sandbox, error: String(error) }),
});
