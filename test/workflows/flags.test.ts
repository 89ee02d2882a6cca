import assert from 'node:assert/strict';
import { it } from 'node:test';
import { flagFacts } from '../../infra/report/collect-report.ts';
import { addFlags, countFlags, flagsOfRollout, flagsText, noFlags } from '../../workflows/algorithms/flags.ts';
import { toRolloutReport } from '../../workflows/algorithms/rollout-end.ts';
import { toSweepRow } from '../../workflows/algorithms/sweep-row.ts';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';

it('counts a rollout once, and once for each of its tricks', () => {
  const counts = countFlags([undefined, ['plugin', 'tests'], [], ['tests']]);
  assert.deepEqual(counts, { rollouts: 2, tricks: { tests: 2, plugin: 1 } });
  assert.deepEqual(countFlags([undefined]), noFlags);
});

it('adds counts', () => {
  const sum = addFlags(countFlags([['tests'], ['exit']]), countFlags([['tests', 'limit']]));
  assert.deepEqual(sum, { rollouts: 3, tricks: { tests: 2, exit: 1, limit: 1 } });
  assert.deepEqual(addFlags(noFlags, sum), sum);
});

it('formats counts with the most frequent first, and no text without flags', () => {
  assert.equal(flagsText(countFlags([['plugin'], ['tests', 'plugin']])), '2 rollouts: plugin 2, tests 1');
  assert.equal(flagsText(countFlags([['exit']])), '1 rollout: exit 1');
  assert.equal(flagsText(noFlags), null);
});

it('keeps the tricks of diff and verdict once each in reports of groups and rows of sweeps', () => {
  const flag = (trick: 'link' | 'tests') => ({ trick, evidence: 'x' });
  const result = {
    rollout: 'r',
    workflowId: 'w',
    task: 't',
    outcome: 'scored',
    reward: 1,
    stageSeconds: {},
    stop: null,
    failure: null,
    trace: null,
    diff: { flags: [flag('link')] },
    verdict: { flags: [flag('tests'), flag('link')] },
  } as unknown as RolloutResult;
  assert.deepEqual(toRolloutReport(result).flags, ['tests', 'link']);
  assert.deepEqual(toSweepRow({ task: 0, attempt: 0, retry: 0 }, result).flags, ['tests', 'link']);
  const honest = { ...result, diff: null, verdict: null };
  assert.equal('flags' in toRolloutReport(honest), false);
  assert.equal('flags' in toSweepRow({ task: 0, attempt: 0, retry: 0 }, honest), false);
});

it('flags a full reward beside a crash of the agent, and no other', () => {
  const verdict = (value: number) => ({ kind: 'graded', value }) as unknown as Verdict;
  const tricks = (stop: StopReason, value: number) =>
    flagsOfRollout({ diff: null, verdict: verdict(value), stop }).map(({ trick }) => trick);
  assert.deepEqual(tricks('crashed', 1), ['crash']);
  assert.deepEqual(tricks('killed', 1), ['crash']);
  assert.deepEqual([tricks('crashed', 0.5), tricks('exited', 1), tricks('deadline', 1)], [[], [], []]);
});

it('shows a rollout with a reward as the example of a trick', () => {
  const rollout = (workflowId: string, reward: number | null) => ({ workflowId, reward, flags: ['exit'] as const });
  const facts = flagFacts([rollout('a', 0), rollout('b', 1), rollout('c', null), { workflowId: 'd', reward: 1 }]);
  assert.deepEqual(facts, [{ trick: 'exit', count: 3, meanReward: 0.5, workflowId: 'b' }]);
});
