import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { renderReport } from '../../../../infra/report/render-report.ts';
import { type Summary, summarise } from '../../../../infra/report/summary.ts';
import { pauseSignal, resumeSignal, runStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { RunRequest } from '../../../../workflows/contracts/run.ts';
import type { SandboxChoice } from '../../../../workflows/contracts/sandbox-kinds.ts';
import type { SweepRequest, SweepResult } from '../../../../workflows/contracts/sweep.ts';
import { cancelWhenAborted } from '../../follow/cancel-when-aborted.ts';
import { startRun, startSweep } from '../../follow/start-workflow.ts';
import type { HomeOption } from '../../stack/command.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { live, note, print, seconds } from '../../text/output.ts';
import { gatherReport } from '../report/gather-report.ts';
import { followRun } from '../train/follow-run.ts';
import type { DemoRecipe } from './recipe.ts';

export interface DemoOptions extends HomeOption {
  readonly seed: number;
  readonly out?: string;
  readonly sandbox: SandboxChoice;
  readonly steps?: number;
  readonly keepUp?: true;
}

/** A demo and the recipe that it follows. */
export interface Demo {
  readonly options: DemoOptions;
  readonly recipe: DemoRecipe;
}

const pollMs = 250;
const cleanUpMs = 60_000;

/**
 * Evaluates, trains, evaluates again, and writes the report. An abort cancels the run, waits for its clean-up, and
 * throws.
 */
export async function runDemo(stack: StackClient, demo: Demo, out: string, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const run = `demo-${demo.options.seed}`;
  const { request, sweep } = requestsOf(demo);

  note('\nwarm-up: training a policy that makes valid edits, most of them wrong');
  const handle = await startRun(stack.client, run, request);
  const release = cancelWhenAborted(handle, signal);
  try {
    // The signal arrives long before the policy is prepared, so that the run waits before its first group.
    await handle.signal(pauseSignal, 'evaluating on held-out tasks before the first step');
    await untilPaused(stack, run, signal);
    note(`evaluating on ${sweep.count} held-out tasks, with topP ${sweep.settings?.sampling?.topP}`);
    const before = await evaluate(stack, `${run}/held-out-before`, sweep, signal);
    note(`held-out reward after the warm-up: ${reward(before)}\n`);
    await handle.signal(resumeSignal);
    const status = await followRun(stack, run, { onPause: giveUp }, signal);
    note(`\nevaluating on the same ${sweep.count} held-out tasks`);
    const after = await evaluate(stack, `${run}/held-out-after`, sweep, signal);
    note(`held-out reward after ${status.step} steps: ${reward(after)}\n`);

    const data = await gatherReport({ ...stack, server: stack.client }, run, {
      before: before.meanReward,
      after: after.meanReward,
      tasks: before.tasks,
    });
    const wallSeconds = (performance.now() - startedAt) / 1000;
    const summary = summarise({ ...data, wallSeconds });
    await mkdir(out, { recursive: true });
    await writeFile(join(out, 'report.html'), renderReport({ ...data, wallSeconds }));
    await writeFile(join(out, 'summary.json'), `${JSON.stringify(summary, null, 2)}\n`);
    print(conclusion(summary, out));
  } catch (error) {
    await endRun(handle);
    throw signal.aborted ? signal.reason : error;
  } finally {
    release();
    live('');
  }
}

/** Fails the demo when its run pauses: the demo is unattended, so a pause is fatal. */
export function giveUp(reason: string): never {
  throw new Error(`the run paused: ${reason}`);
}

/**
 * Cancels a run with its groups and sandboxes. The wait is limited, because the cause of the failure may block the
 * clean-up too.
 */
export async function endRun(handle: WorkflowHandle): Promise<void> {
  const ended = handle
    .cancel()
    .then(() => handle.result())
    .catch(() => undefined); // it has already ended, or ends as cancelled
  await Promise.race([ended, sleep(cleanUpMs, undefined, { ref: false })]);
}

/** Builds the run and the sweep, which share the agent; the sweep samples with the recipe's `topP`. */
function requestsOf({ options: { seed, sandbox, steps }, recipe }: Demo): {
  readonly request: RunRequest;
  readonly sweep: SweepRequest;
} {
  const run = recipe.run(seed);
  const settings = { ...run.settings, sandbox };
  const { topP, ...tasks } = recipe.heldOut(seed);
  const sampling = { ...settings.sampling, topP };
  return {
    request: { ...run, ...(steps !== undefined && { steps }), settings },
    sweep: { ...tasks, seed, settings: { ...settings, sampling } },
  };
}

/** Waits until the run has prepared its policy and has paused. */
async function untilPaused({ client }: StackClient, run: string, signal: AbortSignal): Promise<void> {
  const handle = client.workflow.getHandle(run);
  const failed = handle.result().then(
    () => null,
    (error: unknown) => ({ error }),
  );
  for (;;) {
    const status = await handle.query(runStatusQuery).catch(() => null);
    if (status?.phase === 'paused') return;
    const ended = await Promise.race([failed, sleep(pollMs, null, { signal })]);
    if (ended !== null) throw ended.error;
  }
}

async function evaluate(
  { client }: StackClient,
  id: string,
  request: SweepRequest,
  signal: AbortSignal,
): Promise<SweepResult> {
  const handle = await startSweep(client, id, request);
  const release = cancelWhenAborted(handle, signal);
  try {
    return await handle.result();
  } finally {
    release();
  }
}

const reward = ({ meanReward, outcomes }: SweepResult): string =>
  `${meanReward?.toFixed(3) ?? 'none'} (${Object.entries(outcomes)
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${outcome} ${count}`)
    .join(', ')})`;

function conclusion(summary: Summary, out: string): string {
  const arrow = (before: number | null, after: number | null): string =>
    `${before?.toFixed(2) ?? 'none'} → ${after?.toFixed(2) ?? 'none'}`;
  return [
    `mean reward      ${arrow(summary.meanRewardFirstFifth, summary.meanRewardLastFifth)}  (first and last fifth of ${summary.steps} steps)`,
    `held-out reward  ${arrow(summary.heldOutBefore, summary.heldOutAfter)}`,
    `rollouts         ${summary.rollouts} in ${summary.wallSeconds === null ? 'unknown time' : seconds(summary.wallSeconds)}`,
    `report           ${join(out, 'report.html')}`,
    `summary          ${join(out, 'summary.json')}`,
  ].join('\n');
}
