import assert from 'node:assert/strict';
import { it } from 'node:test';
import { comparisonText } from '../../../workers/cli/commands/eval/comparison-text.ts';
import { sweepText } from '../../../workers/cli/commands/eval/sweep-text.ts';
import { compareSweeps } from '../../../workflows/algorithms/compare-sweeps.ts';
import type { SweepReport, TaskScore } from '../../../workflows/contracts/sweep.ts';
import { sampleReport } from '../../infra/report/sample-report.ts';

const [before, after] = sampleReport().sweeps;
assert.ok(before !== undefined && after !== undefined);
const cutShort: SweepReport = { ...after, result: { ...after.result, unscored: 2, endedEarly: 'cancelled' } };

/** Compares a sweep with that of two tasks, as the command does. */
function compared(to: SweepReport) {
  const found = compareSweeps(before?.taskScores ?? [], to.taskScores);
  assert.ok(found !== null);
  const { passRate, reward } = found;
  const adjustedPValue = 0.6667;
  const means = { passRate: { ...passRate, adjustedPValue }, reward: { ...reward, adjustedPValue } };
  return { after: to, compared: { ...found, ...means } };
}

it('says beside the rates of a sweep that it ended early, what it does not know, and what counts as a failure', () => {
  const text = sweepText(cutShort);
  // One attempt at the last task is lost.
  assert.match(text, /^pass@1 +1\.000 {2}\(95 %: 0\.398 to 1\.000, 4 tasks; ended early\)$/m);
  assert.match(text, /^pass@2 +unknown: a task has only 1 counted attempt$/m);
  assert.match(text, /^ended early +cancelled; only the attempts that had ended count, which are the fast ones$/m);
  assert.match(text, /^unscored +2 attempts that ended in a way that the settings do not score: failures$/m);
  const whole = sweepText(before);
  assert.ok(!/early|^unscored/m.test(whole), whole);
});

it('says which of the compared sweeps ended early, and for how many comparisons p is adjusted', () => {
  const one = comparisonText(before, [compared(cutShort)]);
  assert.match(
    one,
    /^ended early +after: cancelled; only the attempts that had ended count, which are the fast ones$/m,
  );
  const several = comparisonText(before, [compared(after), compared(cutShort)]);
  assert.match(several, /^ended early +after: cancelled; /m);
  assert.match(several, /^after .* 0\.6667 +2 better, 0 worse; 1\.3 expected by chance$/m);
  assert.match(several, /^p: permutation test within the tasks; adjusted for 2 comparisons \(Holm\)$/m);
  assert.ok(!/mean reward/.test(one + several));
});

it('compares mean rewards where attempts have other rewards than 0 and 1', () => {
  const halve = (score: TaskScore): TaskScore => ({ ...score, rewards: score.rewards.map((reward) => reward / 2) });
  const partial: SweepReport = { ...after, taskScores: after.taskScores.map(halve) };
  assert.match(
    comparisonText(before, [compared(partial)]),
    /^mean reward +0\.500 → 0\.500: \+0\.000 +\(95 %: .*\), p /m,
  );
  assert.match(comparisonText(before, [compared(partial), compared(after)]), /^sweep +mean reward +difference/m);
});
