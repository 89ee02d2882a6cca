import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { collectReport } from '../../../infra/report/collect-report.ts';
import { groupFates } from '../../../infra/report/group-fates.ts';
import { renderReport } from '../../../infra/report/render-report.ts';
import { summarise } from '../../../infra/report/summary.ts';
import { type Fate, fates, type Outcome, zeroCount } from '../../../workflows/contracts/outcome.ts';
import { createFileStore, createRecords } from '../../helpers/store/file-store.ts';
import { hostileText, sampleReport } from './sample-report.ts';

it('contains no markup of an agent, no script and no external resource', () => {
  const page = renderReport(sampleReport());
  assert.ok(!page.includes('<script'), 'expected no script element');
  assert.ok(!page.includes('<img'), 'expected no element from the agent');
  assert.ok(!/\s(src|href)=/.test(page.replaceAll(/&lt;.*?&gt;/g, '')), 'expected no external reference');
  assert.ok(page.includes('&lt;script&gt;alert(1)'), 'expected the text of the agent to be shown');
  assert.ok(!page.includes('\u202e') && !page.includes('\u001b'), 'expected control characters to be shown by code');
  assert.ok(page.includes('⟨202e⟩'));
});

it('escapes hostile names and messages everywhere', () => {
  const sample = sampleReport();
  const page = renderReport({
    ...sample,
    run: { ...sample.run, id: hostileText, tasks: hostileText, agent: hostileText, sandbox: hostileText },
    steps: sample.steps.map((step) => ({
      ...step,
      metrics: { [hostileText]: step.step },
      groups: step.groups.map((group) => ({ ...group, task: hostileText })),
    })),
    sweeps: sample.sweeps.map((sweep) => ({
      ...sweep,
      sweep: hostileText,
      result: { ...sweep.result, endedEarly: hostileText },
      taskScores: sweep.taskScores.map((score) => ({ ...score, task: hostileText })),
    })),
    failures: [{ type: hostileText, stage: hostileText, count: 1, example: hostileText, workflowId: hostileText }],
  });
  assert.ok(!page.includes('<script') && !page.includes('<img'));
});

it('shows suspected tricks of the run and its sweeps with counts, rewards and an example', () => {
  const page = renderReport(sampleReport());
  assert.ok(page.includes('9 rollouts: tests 7, plugin 5'));
  assert.match(
    page,
    /<code>tests<\/code><\/td><td class="n">7<\/td><td class="n">0.50<\/td><td><small>demo-1\/0198c2d0\/group-3/,
  );
  assert.ok(page.includes('flagged: 2 rollouts: tests 2'));
  assert.deepEqual(summarise(sampleReport()).flags, { rollouts: 9, tricks: { tests: 7, plugin: 5 } });
  const none = renderReport({ ...sampleReport(), flags: [], flagged: { rollouts: 0, tricks: {} } });
  assert.ok(!none.includes('id="flags"'));
});

it('states the cost of each outcome, also of what was thrown away, in money if there are prices', () => {
  const page = renderReport(sampleReport());
  assert.match(page, /<td>infra, thrown away<\/td><td class="n">5<\/td><td class="n">≥ 9,000<\/td>/);
  const row = /<tr><td>total<\/td>.*<\/tr>/.exec(page)?.[0] ?? '';
  assert.match(row, /<td class="n">30\.0 min<\/td><td class="n">≥ 11\.00<\/td>/);
  assert.ok(page.includes('the price table has no price for: evaluations.'));
  assert.match(page, /<small>≥ 8\.00 EUR, 1\.00 of it thrown away<\/small>/, 'the cost of a sweep');
  assert.equal(summarise(sampleReport()).money?.total, 11);
  assert.ok(!renderReport({ ...sampleReport(), costs: null }).includes('id="cost"'));
});

it('renders a run without steps', () => {
  const sample = sampleReport();
  const page = renderReport({
    ...sample,
    steps: [],
    stages: [],
    heldOut: null,
    sweeps: [],
    example: null,
    wallSeconds: null,
  });
  assert.ok(page.includes('None of 0 steps has a reward'));
  assert.ok(!/NaN|Infinity|undefined/.test(page));
});

it('shows and compares the evaluations of a run with their intervals and omissions', () => {
  const page = renderReport(sampleReport());
  assert.match(page, /<b>0\.500<\/b> <small>0\.068 to 0\.932, 4 tasks<\/small>/);
  assert.match(page, /7 of 8<br><small>left out: infra 1<\/small>/);
  assert.ok(!/ended early/.test(page));
  assert.match(page, /From <code>before<\/code> to <code>after<\/code>, over 4 common tasks: \+0\.500/);
  assert.match(page, /2 tasks improved, 0 worsened; 1\.3 of either expected by chance/);
  assert.ok(!/NaN|Infinity|undefined/.test(page));
  const sample = sampleReport();
  assert.ok(!/Holm/.test(page));
  // A sweep between the first and the last was another look.
  const [first = assert.fail(), last = assert.fail()] = sample.sweeps;
  const looks = renderReport({ ...sample, sweeps: [first, { ...first, sweep: 'between', startedAt: 1 }, last] });
  assert.match(looks, /p = 0\.\d+ by a permutation test, = [01]\.\d+ adjusted for the 2 sweeps .* the first \(Holm\);/);
  const sweeps = sample.sweeps.map((sweep) => ({ ...sweep, result: { ...sweep.result, endedEarly: 'cancelled' } }));
  const cutShort = renderReport({ ...sample, sweeps });
  assert.match(cutShort, /4 tasks<\/small><br><small>ended early: cancelled; only the attempts that had ended count/);
});

it('renders a run with one step', () => {
  const sample = sampleReport();
  const page = renderReport({ ...sample, steps: sample.steps.slice(0, 1) });
  assert.ok(!/NaN|Infinity|undefined/.test(page));
});

it('shows the fates of groups by duration and by task, and warns if slow ones are trained less', () => {
  const report = (index: number, seconds: number) => ({
    ...group(index, ['scored', 'scored'], [index % 2, 1]),
    rollouts: group(index, ['scored', 'scored'], [index % 2, 1]).rollouts.map((rollout) => ({
      ...rollout,
      stop: 'submitted' as const,
      failure: null,
      stageSeconds: { placeRollout: 1_000, awaitAgent: seconds },
    })),
  });
  const groups = Array.from({ length: 40 }, (_, index) => report(index, index + 1));
  const fateOf = (slow: Fate) => new Map(groups.map(({ index }) => [index, index < 30 ? ('trained' as const) : slow]));
  const page = (slow: Fate): string =>
    renderReport({ ...sampleReport(), groupFates: groupFates(groups, fateOf(slow)) });
  assert.match(
    page('stale'),
    /slowest quarter<\/td><td class="n">40<\/td><td class="n">10<\/td><td class="n">0 %<\/td>/,
  );
  assert.match(page('stale'), /Warning: steps took 0 % of the slowest quarter of 40 groups and 100 % of the others/);
  assert.match(page('stale'), /<code>task-39<\/code><\/td><td class="n">40<\/td><td class="n">1<\/td><td>stale 1</);
  assert.match(page('trained'), /<b>0\.75<\/b> over all scored rollouts, <b>0\.75<\/b> over those/);
  assert.doesNotMatch(page('trained'), /Warning: steps took/);
});

it('summarises the first and the last fifth of the steps', () => {
  const sample = sampleReport();
  const steps = sample.steps.slice(0, 10).map((step, index) => ({ ...step, meanReward: index / 16 }));
  const summary = summarise({ ...sample, steps });
  assert.equal(summary.meanRewardFirstFifth, 0.5 / 16);
  assert.equal(summary.meanRewardLastFifth, 8.5 / 16);
  assert.equal(summary.heldOutAfter, 0.94);
  assert.equal(summary.rollouts, 1184);
});

it('collects fates, outcomes, timings and failures from the records of a run', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-report-'));
  try {
    const records = createRecords(join(directory, 'runs'));
    const store = createFileStore(join(directory, 'store'));
    await records.write('key', 'group-0', group(0, ['scored', 'scored'], [1, 0]));
    await records.write('key', 'group-1', group(1, ['scored', 'scored'], [1, 1]));
    await records.write('key', 'group-2', group(2, ['infra', 'infra'], [null, null]));
    await records.write('key', 'group-10', group(10, ['scored', 'stale'], [1, null]));
    const result = {
      step: 1,
      batch: null,
      groups: { ...zeroCount(fates), trained: 1, 'zero-variance': 1 },
      equalGroups: { 'all-0': 0, 'all-1': 1, equal: 0 },
      rollouts: 2,
      tokens: 40,
      meanReward: 0.75,
      staleness: 0,
      metrics: { loss: 0.1 },
    };
    await records.write('key', 'step-1', {
      result,
      trained: [0],
      zeroVariance: [1],
      dropped: [[2, 'infra']],
      recordedAt: 1,
    });

    const data = await collectReport({
      records,
      store,
      run: { ...sampleReport().run, key: 'key' },
      status: null,
      heldOut: null,
      sweeps: [],
      wallSeconds: null,
      pricing: { sampler: { pool: 'default' }, prices: null },
      nameOf: null,
      findRollout: async () => null,
    });
    assert.deepEqual(data.groups, { ...zeroCount(fates), trained: 1, 'zero-variance': 1, infra: 1, 'in-flight': 1 });
    assert.equal(data.rollouts.scored, 5);
    assert.deepEqual(
      data.steps[0]?.groups.map(({ index, fate, meanReward }) => [index, fate, meanReward]),
      [
        [0, 'trained', 0.5],
        [1, 'zero-variance', 1],
        [2, 'infra', null],
      ],
    );
    assert.deepEqual(data.stages, [{ stage: 'evaluate', count: 8, median: 0.5, p90: 0.5, max: 0.5 }]);
    assert.equal(data.failures[0]?.count, 2);
    const { scored, infra } = data.costs?.rollouts ?? {};
    assert.deepEqual([scored?.unknown, infra?.unknown], [5, 2], 'what ended without a result has no known cost');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

function group(index: number, kinds: readonly Outcome[], rewards: readonly (number | null)[]) {
  return {
    group: `run/key/group-${index}`,
    index,
    runKey: 'key',
    task: `task-${index}`,
    admittedVersion: 0,
    rollouts: kinds.map((outcome, position) => ({
      rollout: `r${index}-${position}`,
      workflowId: `run/key/group-${index}/rollout-${position}`,
      outcome,
      reward: rewards[position] ?? null,
      stop: null,
      failure: outcome === 'infra' ? { type: 'SandboxLost', message: 'gone', stage: 'awaitAgent' } : null,
      trace: null,
      stageSeconds: { evaluate: 0.5 },
    })),
  };
}

it('states a time in whole minutes with at most 59 seconds, and in whole hours with at most 59 minutes', () => {
  const page = (wallSeconds: number) => renderReport({ ...sampleReport(), wallSeconds });
  assert.match(page(179.7), /\b3 min 0 s\b/);
  assert.match(page(10_799), /\b3 h 0 min\b/);
});
