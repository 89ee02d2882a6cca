import type { Branching } from '../../../../infra/report/report-data.ts';
import { table } from '../../text/output.ts';

/** The branches of a rollout's conversation, what of them is trained, and what is to be known of the rest. */
export function branchingText({ branches, counts, maskedTurns }: Branching): string {
  const rows = branches.map(
    ({ index, kind, firstTurn, lastTurn, tokens, finishReason, segment, dropped, ...branch }) => [
      String(index + 1),
      kind,
      `${branch.turns} (${firstTurn + 1}–${lastTurn + 1})`,
      String(tokens),
      branch.open === true ? `${finishReason}, at work` : finishReason,
      String(branch.aborts),
      [segment === null ? 'no' : `segment ${segment + 1}`, ...(dropped === null ? [] : [dropped])].join(', '),
    ],
  );
  const echoes = Object.entries(counts.echoes).map(([difference, count]) => `${difference} ${count}`);
  const masked = maskedTurns.map(({ turn, reason }) => `${turn + 1} (${reason})`);
  const facts = [
    ['forks', counts.forks],
    ['branches that stayed on the main line since nothing tells what they are', counts.unclear],
    ['sampled tokens left out', counts.droppedTokens],
    ['echoes in another form', echoes.join(', ')],
    ['masked turns', masked.join(', ')],
  ].flatMap(([what, value]) => (value === 0 || value === '' ? [] : [`${what}: ${value}`]));
  return [table(['branch', 'kind', 'turns', 'tokens', 'finish', 'aborts', 'trained'], rows), ...facts].join('\n');
}
