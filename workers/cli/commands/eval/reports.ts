import { compareSweeps } from '../../../../workflows/algorithms/compare-sweeps.ts';
import { holm } from '../../../../workflows/algorithms/holm.ts';
import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import type { SweepComparison } from '../../../../workflows/contracts/sweep-comparison.ts';
import { findKnown, requireKind } from '../../follow/find-known.ts';
import { readSweepReport } from '../../follow/workflow-report.ts';
import type { JsonOption } from '../../stack/command.ts';
import { onStore } from '../../stack/on-stack.ts';
import { note, print, printJson } from '../../text/output.ts';
import { showSweep } from '../show/sweep.ts';
import { type ComparedSweep, comparisonText } from './comparison-text.ts';

export const showSweepOf = (id: string, options: JsonOption): Promise<void> =>
  onStore(options, async (stack) => {
    const known = requireKind(await findKnown(stack, id), 'evaluationSweep', 'an evaluation sweep');
    await showSweep(stack, known, options.json === true);
  });

export const compareSweepsOf = (beforeId: string, afterIds: readonly string[], options: JsonOption): Promise<void> =>
  onStore(options, async (stack) => {
    const before = await readSweepReport(stack, beforeId);
    const found: { readonly after: SweepReport; readonly compared: SweepComparison }[] = [];
    for (const afterId of afterIds) {
      const after = await readSweepReport(stack, afterId);
      found.push({ after, compared: comparedWith(before, after) });
    }
    const adjusted = {
      passRate: holm(found.map(({ compared }) => compared.passRate.pValue)),
      reward: holm(found.map(({ compared }) => compared.reward.pValue)),
    };
    const sweeps: readonly ComparedSweep[] = found.map(({ after, compared }, index) => {
      const withAdjusted = (of: 'passRate' | 'reward') => ({
        ...compared[of],
        adjustedPValue: adjusted[of][index] ?? 1,
      });
      return { after, compared: { ...compared, passRate: withAdjusted('passRate'), reward: withAdjusted('reward') } };
    });
    if (!options.json) return print(comparisonText(before, sweeps));
    printJson({
      before: describe(before),
      comparisons: sweeps.map(({ after, compared }) => ({ after: describe(after), ...compared })),
    });
  });

function comparedWith(before: SweepReport, after: SweepReport): SweepComparison {
  const compared = compareSweeps(before.taskScores, after.taskScores);
  if (compared === null) {
    throw new Error(
      `the sweeps have no counted task in common: ${before.sweep} evaluated ${before.input.tasks}, ${after.sweep} evaluated ${after.input.tasks}`,
    );
  }
  if (before.input.passAt !== after.input.passAt) {
    note(
      `the sweeps count different rewards as a pass: ${before.input.passAt} and above in ${before.sweep}, ${after.input.passAt} and above in ${after.sweep}`,
    );
  }
  return compared;
}

/** Describes a sweep that is compared: its subject, its agent, and how its results came about. */
const describe = (report: SweepReport) => ({
  sweep: report.sweep,
  evaluated: evaluatedOf(report),
  ...agentOf(report),
  passAt: report.input.passAt,
  endedEarly: report.result.endedEarly,
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
