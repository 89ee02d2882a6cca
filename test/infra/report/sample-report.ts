import { groupFates } from '../../../infra/report/group-fates.ts';
import type { GroupFacts, ReportData, StepFacts } from '../../../infra/report/report-data.ts';
import { summariseSweep } from '../../../workflows/algorithms/summarise-sweep.ts';
import type { GroupReport } from '../../../workflows/contracts/group.ts';
import { fates, outcomes, zeroCount } from '../../../workflows/contracts/outcome.ts';
import { stages } from '../../../workflows/contracts/rollout.ts';
import { type SweepReport, type SweepRow, sweepInput } from '../../../workflows/contracts/sweep.ts';

const blob = { digest: 'a'.repeat(64), size: 10, mediaType: 'text/plain' };

/** The data of a plausible run of 24 steps. Its pseudo-random values are always the same. */
export function sampleReport(): ReportData {
  let state = 7;
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  const steps = Array.from({ length: 24 }, (_, index) => sampleStep(index + 1, random));
  const ended = steps.flatMap(({ groups }) => groups);
  return {
    run: {
      id: 'demo-1',
      key: '0198c2d0-aaaa-7bbb-8ccc-123456789abc',
      tasks: 'generated:train/1',
      agent: 'mini',
      sandbox: 'local',
      stepsAsked: 24,
      groupsPerStep: 6,
      rolloutsPerGroup: 8,
      maxStaleness: 1,
      seed: 1,
    },
    steps,
    groups: { ...zeroCount(fates), trained: 118, 'zero-variance': 26, stale: 3, infra: 1, 'in-flight': 0 },
    groupFates: groupFates(ended.map(reportOf), new Map(ended.map(({ index, fate }) => [index, fate]))),
    rollouts: { ...zeroCount(outcomes), scored: 1171, infra: 5, stale: 8 },
    stages: stages.map((stage, index) => ({
      stage,
      count: 1184,
      median: 0.02 + 0.05 * ((index * 5) % 7),
      p90: 0.05 + 0.09 * ((index * 5) % 7),
      max: 2.5,
    })),
    failures: [
      {
        type: 'EngineUnavailable',
        stage: 'awaitAgent',
        count: 5,
        example: 'the engine was unavailable for longer than the grace period during a turn',
        workflowId: 'demo-1/0198c2d0/group-17/rollout-3',
      },
    ],
    rising: [{ trick: 'tests', flagged: 9, rollouts: 64, flaggedBefore: 2, rolloutsBefore: 128 }],
    flags: [
      { trick: 'tests', count: 7, meanReward: 0.5, workflowId: 'demo-1/0198c2d0/group-3/rollout-1' },
      { trick: 'plugin', count: 5, meanReward: null, workflowId: 'demo-1/0198c2d0/group-4/rollout-0' },
    ],
    flagged: { rollouts: 9, tricks: { tests: 7, plugin: 5 } },
    sweeps: [sampleSweep('before', 2), sampleSweep('after', 4)],
    heldOut: { before: 0.31, after: 0.94, tasks: 32 },
    example: {
      result: {
        rollout: '0198c2d0-dddd-7bbb-8ccc-123456789abc',
        workflowId: 'demo-1/0198c2d0/group-140/rollout-2',
        task: 'generated-train-1-140',
        agent: 'mini',
        outcome: 'scored',
        reward: 1,
        stop: 'submitted',
        failure: null,
        trace: null,
        diff: { patch: blob, baseCommit: 'b'.repeat(40), files: 1, dropped: 0, tooLarge: false },
        verdict: {
          kind: 'graded',
          value: 1,
          exitCode: 0,
          passed: 4,
          failed: 0,
          log: blob,
          subject: 'c',
          grader: 'v1'.repeat(64),
        },
        agentLog: blob,
        bundle: blob,
        epochs: 1,
        cost: {
          promptTokens: 0,
          sampledTokens: 0,
          engineSeconds: 0,
          waitedSeconds: 0,
          sandboxSeconds: {},
          evaluationSeconds: 0,
        },
        stageSeconds: { provisionSandbox: 0.2, awaitAgent: 0.9, evaluate: 0.4 },
      },
      branching: null,
      tokens: [
        {
          segment: 0,
          kind: 'main',
          length: 16,
          trained: 1,
          shared: 0,
          tokens: [
            { text: '<|im_start|>', is: 'given', logprob: null },
            { text: hostileText, is: 'given', logprob: null },
            { text: 'a + b', is: 'sampled', logprob: -0.2 },
            { text: 'a - b', is: 'masked', logprob: -3.5 },
          ],
          left: 12,
        },
      ],
      segmentsLeft: 0,
      messages: [
        { role: 'system', text: 'You fix bugs in small JavaScript repositories.', turn: null },
        { role: 'user', text: 'sum.js adds wrongly. Find out why and fix it.', turn: null },
        { role: 'assistant', text: '{"name":"bash","arguments":{"command":"cat sum.js"}}', turn: facts(0) },
        { role: 'tool', text: 'export const sum = (a, b) => a - b;\n', turn: null },
        { role: 'assistant', text: '{"name":"edit","arguments":{"old":"a - b","new":"a + b"}}', turn: facts(1) },
        { role: 'tool', text: hostileText, turn: null },
        { role: 'assistant', text: '{"name":"submit","arguments":{}}', turn: facts(2) },
      ],
      agentLogEnd: null,
      patch:
        'diff --git a/sum.js b/sum.js\nindex 1..2 100644\n--- a/sum.js\n+++ b/sum.js\n@@ -1 +1 @@\n-export const sum = (a, b) => a - b;\n+export const sum = (a, b) => a + b;\n',
      testLog: 'ok 1 - adds\nok 2 - adds negatives\n# pass 4\n# fail 0\n',
      networkHosts: [],
    },
    wallSeconds: 318,
    costs: {
      rollouts: {
        scored: {
          rollouts: 1171,
          unknown: 0,
          promptTokens: 1_991_000,
          sampledTokens: 500_000,
          engineSeconds: 900,
          waitedSeconds: 0,
          sandboxSeconds: { local: 3600 },
          evaluationSeconds: 1800,
        },
        infra: {
          rollouts: 5,
          unknown: 2,
          promptTokens: 9_000,
          sampledTokens: 0,
          engineSeconds: 60,
          waitedSeconds: 0,
          sandboxSeconds: { local: 7200 },
          evaluationSeconds: 0,
        },
      },
      trainerSeconds: 1800,
      sampler: { pool: 'default' },
      prices: {
        currency: 'EUR',
        pools: { default: { input: 1, output: 2 } },
        upstreams: {},
        sandboxHour: { local: 2 },
        trainerHour: 4,
      },
    },
  };
}

/** A sweep of four tasks with two attempts each. The first `passing` tasks pass; one attempt of the last task is lost. */
function sampleSweep(sweep: string, passing: number): SweepReport {
  const tasks = [0, 1, 2, 3];
  const rows = tasks.flatMap((task) =>
    [0, 1].map((attempt): SweepRow => {
      const lost = task === 3 && attempt === 1;
      return {
        task,
        attempt,
        retry: 0,
        taskId: `task-${task}`,
        workflowId: `${sweep}/rollout-${task}-${attempt}`,
        outcome: lost ? 'infra' : 'scored',
        reward: lost ? null : task < passing ? 1 : 0,
        stop: 'submitted',
        failure: null,
        versions: [3, 3],
        turns: 2,
        sampledTokens: 40,
        promptTokens: 900,
        seconds: 2,
        sandboxSeconds: 1.5,
        cost: {
          promptTokens: 1_000_000,
          sampledTokens: 0,
          engineSeconds: 1,
          waitedSeconds: 0,
          sandboxSeconds: {},
          evaluationSeconds: 0.5,
        },
        ...(task === 0 && { flags: ['tests' as const] }),
      };
    }),
  );
  return summariseSweep({
    sweep,
    sweepKey: 'key',
    input: sweepInput.parse({ tasks: 'generated:test/1', attempts: 2 }),
    run: 'demo-1',
    quarantined: [],
    lacking: [],
    startedAt: 0,
    endedAt: 9_000,
    pin: { policyVersion: 3 },
    endedEarly: null,
    rows,
    tasks: tasks.map((task) => `generated:test/1/${task}`),
  });
}

/** A text with which an agent might try to take over the page of a report's reader. */
export const hostileText =
  '</pre><script>alert(1)</script><img src=x onerror=alert(2)>"\'&\u202egnp.exe\u0000\u001b[31m';

/** The report of a group whose rollouts took the longer the lower their rewards are. */
const reportOf = ({ index, task, rewards }: GroupFacts): GroupReport => ({
  group: `demo-1/group-${index}`,
  index,
  runKey: '0198c2d0',
  task,
  admittedVersion: 0,
  rollouts: rewards.map((reward, position) => ({
    rollout: `${index}-${position}`,
    workflowId: `demo-1/group-${index}/rollout-${position}`,
    outcome: 'scored',
    reward,
    stop: 'submitted',
    failure: null,
    trace: null,
    stageSeconds: { awaitAgent: 20 - 10 * reward },
  })),
});

function sampleStep(step: number, random: () => number): StepFacts {
  const level = 0.28 + 0.68 / (1 + Math.exp(-(step - 11) / 2.6));
  const groups = Array.from({ length: 6 }, (_, index): GroupFacts => {
    const rewards = Array.from({ length: 8 }, () => (random() < level + (random() - 0.5) * 0.25 ? 1 : 0));
    const meanReward = rewards.reduce<number>((sum, reward) => sum + reward, 0) / 8;
    const fate = meanReward === 0 || meanReward === 1 ? 'zero-variance' : 'trained';
    return { index: step * 6 + index, task: `generated-train-1-${step * 6 + index}`, fate, rewards, meanReward };
  });
  const meanReward = groups.reduce((sum, group) => sum + (group.meanReward ?? 0), 0) / groups.length;
  const metrics = {
    loss: -0.02 + random() * 0.01,
    kl: 0.002 * step + random() * 0.004,
    entropy: 1.4 - 0.05 * step,
    'grad-norm': 0.8 + random(),
    'ratio-max': 1 + random() * 0.3,
  };
  return {
    step,
    isUpdate: true,
    meanReward,
    groups,
    staleness: random() < 0.7 ? 1 : 0,
    rollouts: 40,
    tokens: 5_000 + Math.round(random() * 900),
    metrics,
  };
}

function facts(index: number) {
  return { index, tokens: 31 + index * 7, seconds: 0.21, versions: [22] };
}
