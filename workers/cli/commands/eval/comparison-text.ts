import { roundingError } from '../../../../workflows/algorithms/rounding.ts';
import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import type { ComparedMean, SweepComparison } from '../../../../workflows/contracts/sweep-comparison.ts';
import { counted, table } from '../../text/output.ts';
import { agentText, evaluatedText, factLines } from './sweep-text.ts';

/** A mean whose p-value is adjusted for all comparisons that were made together. */
export type AdjustedMean = ComparedMean & { readonly adjustedPValue: number };

/** A sweep that was compared with the first one. */
export interface ComparedSweep {
  readonly after: SweepReport;
  readonly compared: Omit<SweepComparison, 'passRate' | 'reward'> & Record<'passRate' | 'reward', AdjustedMean>;
}

/** Formats the comparisons of sweeps with a first one. */
export function comparisonText(before: SweepReport, sweeps: readonly ComparedSweep[]): string {
  const [only, ...others] = sweeps;
  if (only === undefined) throw new Error('expected a comparison, got none');
  return others.length === 0 ? textOfOne(before, only) : textOfSeveral(before, sweeps);
}

function textOfOne(before: SweepReport, { after, compared }: ComparedSweep): string {
  const { tasks, onlyBefore, onlyAfter, passRate, reward, flipped } = compared;
  const text = [
    `${before.sweep} → ${after.sweep}, on the ${counted(tasks, 'task')} that both counted${onlyBefore + onlyAfter === 0 ? '' : ` (${onlyBefore} only in the first, ${onlyAfter} only in the second)`}`,
    factLines([
      ['evaluated', `${evaluatedText(before) ?? 'no model'} → ${evaluatedText(after) ?? 'no model'}`],
      ['agent', `${agentText(before)} → ${agentText(after)}`],
      ['pass rate', changeOf(passRate)],
      ['difference', `${signed(passRate.difference)}  (95 %: ${intervalOf(passRate)})`],
      ['p', `${pText(passRate.pValue)}  (permutation test within the tasks, ${methodOf(passRate)})`],
      ...(isPartial(compared)
        ? [
            [
              'mean reward',
              `${changeOf(reward)}: ${signed(reward.difference)}  (95 %: ${intervalOf(reward)}), p ${pText(reward.pValue)}  (${methodOf(reward)})`,
            ],
          ]
        : []),
      ['flipped', flippedText(compared)],
      ...endedEarly([before, after]),
    ]),
  ].join('\n');
  const rows = flipped.map((task) => [
    task.task,
    task.before.toFixed(2),
    task.after.toFixed(2),
    task.after > task.before ? 'better' : 'worse',
  ]);
  return rows.length === 0 ? text : `${text}\n\n${table(['task', 'before', 'after', ''], rows)}`;
}

function textOfSeveral(before: SweepReport, sweeps: readonly ComparedSweep[]): string {
  const cells = (mean: AdjustedMean): readonly string[] => [
    changeOf(mean),
    signed(mean.difference),
    intervalOf(mean),
    pText(mean.pValue),
    pText(mean.adjustedPValue),
  ];
  const head = ['difference', '95 %', 'p', 'adjusted p'];
  const rates = table(
    ['sweep', 'evaluated', 'tasks', 'pass rate', ...head, 'flipped'],
    sweeps.map(({ after, compared }) => [
      after.sweep,
      evaluatedText(after) ?? 'no model',
      String(compared.tasks),
      ...cells(compared.passRate),
      flippedText(compared),
    ]),
  );
  const rewards = table(
    ['sweep', 'mean reward', ...head],
    sweeps.map(({ after, compared }) => [after.sweep, ...cells(compared.reward)]),
  );
  const early = endedEarly([before, ...sweeps.map(({ after }) => after)]);
  return [
    `${before.sweep} (${evaluatedText(before) ?? 'no model'}) → ${counted(sweeps.length, 'sweep')}, each on the tasks that both counted`,
    rates,
    ...(sweeps.some(({ compared }) => isPartial(compared)) ? [rewards] : []),
    ...(early.length === 0 ? [] : [factLines(early)]),
    `p: permutation test within the tasks; adjusted for ${sweeps.length} comparisons (Holm)\nThe best of several sweeps looks better than it is: evaluate the version that you choose again, with another --seed.`,
  ].join('\n\n');
}

/** Whether some attempts have rewards other than 0 and 1, so that passes are not all there is to compare. */
const isPartial = ({ passRate, reward }: Pick<SweepComparison, 'passRate' | 'reward'>): boolean =>
  Math.abs(passRate.before - reward.before) > roundingError || Math.abs(passRate.after - reward.after) > roundingError;

function flippedText({ flipped, flippedByChance }: Pick<SweepComparison, 'flipped' | 'flippedByChance'>): string {
  const better = flipped.filter((task) => task.after > task.before).length;
  return `${better} better, ${flipped.length - better} worse; ${flippedByChance.toFixed(1)} expected by chance`;
}

const endedEarly = (reports: readonly SweepReport[]): readonly string[][] =>
  reports.flatMap(({ sweep, result }) =>
    result.endedEarly === null
      ? []
      : [
          [
            'ended early',
            `${sweep}: ${result.endedEarly}; only the attempts that had ended count, which are the fast ones`,
          ],
        ],
  );

const changeOf = ({ before, after }: ComparedMean): string => `${before.toFixed(3)} → ${after.toFixed(3)}`;
const intervalOf = ({ low, high }: ComparedMean): string => `${signed(low)} to ${signed(high)}`;
const methodOf = ({ method }: ComparedMean): string => (method === 'exact' ? 'exact' : 'random permutations');
const pText = (pValue: number): string => (pValue < 0.0001 ? '< 0.0001' : pValue.toFixed(4));
const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
