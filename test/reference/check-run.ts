import { asBatch } from '../../activities/control/batch.ts';
import { loadModel, type Model } from '../../infra/kits/chat-tokens/index.ts';
import { findStep } from '../../infra/report/run-records.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import type { StackClient } from '../../workers/cli/stack/stack-client.ts';
import type { Batch, BatchSegment } from '../../workflows/contracts/batch.ts';
import type { RunStatus, StepResult } from '../../workflows/contracts/run.ts';
import { publishedDigest } from './published-weights.ts';

const atMost = { firstReward: 0.6, behaviourGap: 1e-3, logprobGap: 1e-4 } as const;
/** The mean over three steps in a row must reach this, since a single step has few rollouts. */
const atLeast = { reward: 0.9 } as const;

interface Expected {
  /** Directory of the trainer's and the engine's weights. */
  readonly checkpoints: string;
  readonly maxTokensPerTurn: number;
  /** Whether the rewards must rise. */
  readonly learns: boolean;
}

/** Returns the problems of a finished run. */
export async function checkRun(
  stack: StackClient,
  { runKey, steps }: RunStatus,
  { checkpoints, maxTokensPerTurn, learns }: Expected,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const model = await loadModel(stack.config.modelDir);
  const results: StepResult[] = [];
  for (let step = 1; step <= steps; step += 1) {
    const record = await findStep(stack.records, runKey, step);
    if (record === null) return [...problems, `expected a record of step ${step}, got none`];
    results.push(record.result);
    for (const problem of await checkStep(stack, model, record.result, maxTokensPerTurn))
      problems.push(`step ${step}: ${problem}`);
  }
  if (learns) problems.push(...checkRewards(results));
  for (const problem of await checkUpdates(stack, runKey, results)) problems.push(problem);
  for (const problem of await checkWeights(stack, checkpoints, runKey, results)) problems.push(problem);
  return problems;
}

function checkRewards(results: readonly StepResult[]): readonly string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, problem: string): void => void (holds || problems.push(problem));
  const rewards = results.flatMap(({ meanReward }) => meanReward ?? []);
  expect(
    rewards.length === results.length,
    `expected a mean reward of each of ${results.length} steps, got ${rewards.length}`,
  );
  const [first = Number.NaN] = rewards;
  const best = Math.max(
    ...rewards.slice(2).map((reward, at) => ((rewards[at] ?? 0) + (rewards[at + 1] ?? 0) + reward) / 3),
  );
  expect(first <= atMost.firstReward, `expected a first mean reward of at most ${atMost.firstReward}, got ${first}`);
  expect(
    best >= atLeast.reward,
    `expected three steps in a row with a mean reward of at least ${atLeast.reward}, got ${best} at best`,
  );
  return problems;
}

async function checkStep(
  stack: StackClient,
  model: Model,
  result: StepResult,
  maxTokensPerTurn: number,
): Promise<readonly string[]> {
  const { step, batch: ref, metrics } = result;
  if (ref === null) return [];
  const batch = asBatch(await stack.store.getJson(ref.digest));
  const problems = batch.segments.flatMap(({ segment }) => checkSegment(model, segment, step - 1, maxTokensPerTurn));
  const limits = [
    ['maxBehaviourGap', atMost.behaviourGap],
    ['maxLogprobGap', atMost.logprobGap],
  ] as const;
  for (const [name, limit] of limits) {
    const value = metrics[name] ?? Number.NaN;
    if (!(value <= limit)) problems.push(`expected ${name} of at most ${limit}, got ${value}`);
  }
  return problems;
}

/** Checks that the policy's tokens are whole replies after their headers, sampled by the version before the step. */
function checkSegment(
  model: Model,
  segment: BatchSegment['segment'],
  version: number,
  maxTokensPerTurn: number,
): readonly string[] {
  const { tokens, mask, logprobs, versions } = segment;
  if (new Set([tokens.length, mask.length, logprobs.length, versions.length]).size !== 1) {
    return ['expected ids, mask, logprobs and versions of one length'];
  }
  const trained = mask.flatMap((one, at) => (one === 1 ? [at] : []));
  const problems = [
    ...trained.filter((at) => versions[at] !== version).map((at) => `expected version ${version}, got ${versions[at]}`),
    ...trained
      .filter((at) => !((logprobs[at] ?? Number.NaN) <= 0))
      .map((at) => `expected a logprob, got ${logprobs[at]}`),
    ...trained.filter((at) => mask[at - 1] !== 1).flatMap((at) => checkStart(model, tokens.slice(0, at))),
    ...trained
      .filter((at) => mask[at + 1] === 0 && !model.stopTokenIds.includes(tokens[at] ?? -1))
      .filter((at) => replyLength(mask, at) < maxTokensPerTurn)
      .map(() => 'expected a reply that ends its turn or has used up its tokens'),
  ];
  return [...new Set(trained.length === 0 ? ['expected tokens of the policy, got none'] : problems)];
}

/** Returns the number of tokens of the reply that ends at a position. */
const replyLength = (mask: readonly number[], end: number): number => end - mask.lastIndexOf(0, end);

const header = '<|im_start|>assistant\n';

function checkStart({ tokens }: Model, before: readonly number[]): readonly string[] {
  const expected = tokens.encode(header);
  const got = before.slice(-expected.length);
  if (got.join() === expected.join()) return [];
  return [`expected a reply after ${JSON.stringify(header)}, got ${JSON.stringify(tokens.decode(got))}`];
}

/** Checks that each step with a batch had one update on data of its own. */
async function checkUpdates(
  { shared }: StackClient,
  runKey: string,
  results: readonly StepResult[],
): Promise<readonly string[]> {
  const { state } = await openJournal(shared.objects, runKey);
  const problems: string[] = [];
  const trained = results.filter(({ batch }) => batch !== null).map(({ step }) => step);
  const done = Object.keys(state.updates).map(Number);
  if (done.join() !== trained.join()) problems.push(`expected updates of steps ${trained}, got ${done}`);
  const updates = Object.values(state.updates);
  if (new Set(updates.map(({ data }) => data)).size !== updates.length)
    problems.push('expected each update on other data');
  return problems;
}

/**
 * Checks that each step's version is on the engine, and that it differs from the one before if the step had anything to learn
 * from.
 */
async function checkWeights(
  stack: StackClient,
  checkpoints: string,
  runKey: string,
  results: readonly StepResult[],
): Promise<readonly string[]> {
  const problems: string[] = [];
  let before = await publishedDigest(checkpoints, runKey, 0);
  if (before === null) problems.push('expected version 0 on the engine, got none');
  for (const { step, batch: ref } of results) {
    const digest = await publishedDigest(checkpoints, runKey, step);
    if (digest === null) problems.push(`step ${step}: expected its version on the engine, got none`);
    const learnt = ref !== null && hasSpread(asBatch(await stack.store.getJson(ref.digest)));
    if (learnt && digest === before) problems.push(`step ${step}: expected other weights than before, got the same`);
    before = digest;
  }
  return problems;
}

/**
 * Whether any group's rewards differ. Equal rewards give no advantages, and without a KL term nothing then changes the
 * weights.
 */
function hasSpread({ rollouts }: Batch): boolean {
  const rewards = new Map<number, Set<number>>();
  for (const { group, reward } of rollouts) rewards.set(group, (rewards.get(group) ?? new Set()).add(reward));
  return [...rewards.values()].some(({ size }) => size > 1);
}
