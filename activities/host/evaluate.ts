import { Context, log } from '@temporalio/activity';
import { evaluate } from '../../infra/grading/evaluate.ts';
import { evaluateInPlace } from '../../infra/grading/evaluate-in-place.ts';
import type { EvaluationHost } from '../../infra/grading/evaluation.ts';
import { toMs } from '../../workflows/algorithms/cost.ts';
import type { Evaluated } from '../../workflows/contracts/evaluation.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { EvaluationActivities, HostActivities } from '../interfaces/host.ts';
import { declineElsewhere } from './elsewhere.ts';
import { attachAgentSandbox, type Host } from './host.ts';
import { createTestNetworks } from './network.ts';

export function createEvaluation(host: Host): EvaluationActivities {
  const evaluating = evaluationHost(host);
  return {
    evaluate: (input) =>
      joinAtBoundary(async (signal, report) => {
        await declineElsewhere(host, input.sandbox);
        const { attempt: number } = Context.current().info;
        return timed(() => evaluate(evaluating, input, { number, report }, signal));
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
        return timed(() => evaluateInPlace(evaluating, input, { sandbox, secrets, number, report }, signal));
      }),
  };
}

/** Adds the time that an evaluation ran to its verdict. The verdict itself, which may be cached, does not know it. */
async function timed(evaluation: () => Promise<Verdict>): Promise<Evaluated> {
  const beganMs = performance.now();
  return { ...(await evaluation()), seconds: toMs((performance.now() - beganMs) / 1000) };
}

const evaluationHost = (host: Host): EvaluationHost => ({
  ...host,
  testNetwork: createTestNetworks(host),
  reportLeft: (sandbox, error) =>
    log.warn('could not remove the sandbox of an evaluation; the reaper does it', { sandbox, error: String(error) }),
});
