import { Context } from '@temporalio/activity';
import { evaluate } from '../../infra/grading/evaluate.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { EvaluationActivities } from '../interfaces/host.ts';
import type { Host } from './host.ts';

export function createEvaluation(host: Host): EvaluationActivities {
  return {
    evaluate: (input) =>
      joinAtBoundary((signal, report) =>
        evaluate(host, input, { number: Context.current().info.attempt, report }, signal),
      ),
  };
}
