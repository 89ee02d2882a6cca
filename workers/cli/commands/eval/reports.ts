import { compareSweeps } from '../../../../workflows/algorithms/compare-sweeps.ts';
import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import { findWorkflow } from '../../follow/find-workflow.ts';
import { readSweepReport } from '../../follow/workflow-report.ts';
import type { JsonOption } from '../../stack/command.ts';
import { onStack } from '../../stack/on-stack.ts';
import { note, print, printJson } from '../../text/output.ts';
import { showSweep } from '../show/sweep.ts';
import { comparisonText } from './sweep-text.ts';

export const showSweepOf = (id: string, options: JsonOption): Promise<void> =>
  onStack(options, async (stack) => {
    const found = await findWorkflow(stack.client, id);
    if (found.kind !== 'evaluationSweep') {
      throw new Error(`${id} is a ${found.kind}, not an evaluation sweep; see \`temper show ${id}\``);
    }
    await showSweep(stack, found, options.json === true);
  });

export const compareSweepsOf = (beforeId: string, afterId: string, options: JsonOption): Promise<void> =>
  onStack(options, async (stack) => {
    const [before, after] = [await readSweepReport(stack, beforeId), await readSweepReport(stack, afterId)];
    const compared = compareSweeps(before.taskScores, after.taskScores);
    if (compared === null) {
      throw new Error(
        `the sweeps have no counted task in common: ${beforeId} evaluated ${before.input.tasks}, ${afterId} evaluated ${after.input.tasks}`,
      );
    }
    if (before.input.passAt !== after.input.passAt) {
      note(
        `the sweeps count different rewards as a pass: ${before.input.passAt} and above in the first, ${after.input.passAt} and above in the second`,
      );
    }
    if (!options.json) return print(comparisonText(before, after, compared));
    printJson({
      sweeps: [beforeId, afterId],
      evaluated: [evaluatedOf(before), evaluatedOf(after)],
      agents: [agentOf(before), agentOf(after)],
      passAt: [before.input.passAt, after.input.passAt],
      ...compared,
    });
  });

/** The subject of a sweep: a policy version of a run, an upstream model, or neither if its agent calls no model. */
const evaluatedOf = ({ run, result: { policyVersion, upstream } }: SweepReport) => ({
  run: policyVersion === null ? null : run,
  policyVersion,
  upstream: upstream ?? null,
});

const agentOf = ({ input: { settings } }: SweepReport) => ({
  agent: settings.agent,
  agentOptions: settings.agentOptions ?? {},
});
