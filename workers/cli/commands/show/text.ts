import type { Branching } from '../../../../infra/report/report-data.ts';
import { flagsOfRollout } from '../../../../workflows/algorithms/flags.ts';
import type { RolloutResult } from '../../../../workflows/contracts/rollout.ts';
import type { Exposure } from '../../../../workflows/contracts/verdict.ts';
import { table } from '../../text/output.ts';

/** Formats the branches of a rollout's conversation: which of them are trained, and what the others lack. */
export function branchingText({ branches, counts, maskedTurns }: Branching): string {
  const rows = branches.map(
    ({ index, kind, firstTurn, lastTurn, tokens, finishReason, segment, dropped, ...branch }) => [
      String(index + 1),
      kind,
      `${branch.turns} (${firstTurn + 1}–${lastTurn + 1})`,
      String(tokens),
      branch.open === true ? `${finishReason}, in progress` : finishReason,
      String(branch.aborts),
      [segment === null ? 'no' : `segment ${segment + 1}`, ...(dropped === null ? [] : [dropped])].join(', '),
    ],
  );
  const echoes = Object.entries(counts.echoes).map(([difference, count]) => `${difference} ${count}`);
  const masked = maskedTurns.map(({ turn, reason }) => `${turn + 1} (${reason})`);
  const facts = [
    ['forks', counts.forks],
    ['branches of unclear kind, treated as main', counts.unclear],
    ['sampled tokens that are not trained', counts.droppedTokens],
    ['replies echoed in another form', echoes.join(', ')],
    ['masked turns', masked.join(', ')],
  ].flatMap(([what, value]) => (value === 0 || value === '' ? [] : [`${what}: ${value}`]));
  return [table(['branch', 'kind', 'turns', 'tokens', 'finish', 'aborts', 'trained'], rows), ...facts].join('\n');
}

const exposures: Readonly<Record<Exposure, string>> = {
  'in-process': 'in the process of its tests',
  'same-account': "under the account of the task's test script",
  'other-account': 'under another account than its tests',
};

/** Lists the suspected tricks of a rollout, and how close the code under test could get to its grader. */
export function doubtLines(result: Pick<RolloutResult, 'diff' | 'verdict'>): readonly string[] {
  const exposure = result.verdict?.exposure;
  return [
    ...flagsOfRollout(result).map(({ trick, evidence }) => `flag ${trick}: ${evidence}`),
    ...(exposure === undefined ? [] : [`the code under test ran ${exposures[exposure]} (${exposure})`]),
  ];
}
