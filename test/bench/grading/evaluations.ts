import { randomUUID } from 'node:crypto';
import type { Host } from '../../../activities/host/host.ts';
import { captureDiff } from '../../../infra/grading/capture/capture-diff.ts';
import { evaluate } from '../../../infra/grading/evaluate.ts';
import type { SandboxKind, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { Diff } from '../../../workflows/contracts/diff.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { each, perRun } from '../measure.ts';
import { afterSolution, offline, report } from './after-solution.ts';
import type { Clock } from './clock.ts';
import { testsTime } from './timed-provider.ts';

export interface EvaluationFigures {
  readonly evaluations: number;
  readonly concurrency: number;
  readonly perMinute: number;
  /** The duration of one evaluation. */
  readonly wallMs: number;
  /** The CPU time of one evaluation, on all cores. */
  readonly cpuMs: number;
  /** The time of one evaluation by activity. The rest is temper's own process and its store. */
  readonly spentMs: Readonly<Record<string, number>>;
  readonly shareInTests: number;
}

/** A task with the diff of its reference solution. */
interface Solved {
  readonly task: Task;
  readonly diff: Diff;
}

export interface Bench {
  readonly host: Host;
  readonly provider: SandboxProvider;
  readonly kind: SandboxKind;
  readonly clock: Clock;
  readonly concurrency: number;
  progress(text: string): void;
}

/** Captures the diff of each reference solution once, then measures evaluations of them, one task after the other. */
export async function measureEvaluations(
  bench: Bench,
  addresses: readonly string[],
  evaluations: number,
  signal: AbortSignal,
): Promise<EvaluationFigures> {
  const { clock, concurrency } = bench;
  const solved: Solved[] = [];
  const left = [...addresses];
  await each(addresses.length, concurrency, async () => {
    const address = left.shift() ?? '';
    solved.push(await solve(bench, address, signal));
    bench.progress(`${solved.length} of ${addresses.length} reference solutions`);
  });
  await each(concurrency, concurrency, () => judge(bench, solved, 0, signal));
  clock.reset();
  let begun = 0;
  let ended = 0;
  const one = async (): Promise<void> => {
    await clock.time('all', () => judge(bench, solved, begun++, signal));
    ended += 1;
    bench.progress(`${ended} of ${evaluations} evaluations`);
  };
  const cost = await perRun(evaluations, () => each(evaluations, concurrency, one));
  const ofOne = (ms: number): number => ms / evaluations;
  const wallMs = ofOne(clock.spentMs.get('all') ?? 0);
  const spent = [...clock.spentMs].filter(([name]) => name !== 'all');
  const spentMs = Object.fromEntries(spent.map(([name, ms]) => [name, ofOne(ms)]));
  const shareInTests = (spentMs[testsTime] ?? 0) / wallMs;
  return {
    evaluations,
    concurrency,
    perMinute: 60_000 / cost.wallMs,
    wallMs,
    cpuMs: cost.cpuMs,
    spentMs,
    shareInTests,
  };
}

/** Captures the diff of a reference solution, as a rollout of the oracle does. */
function solve({ host, provider }: Bench, address: string, signal: AbortSignal): Promise<Solved> {
  return afterSolution({ host, provider }, address, signal, async ({ sandbox, task, baseCommit }) => {
    const { workdir } = task;
    const diff = await captureDiff(sandbox, host.store, { workdir, baseCommit, failedBefore: true }, signal);
    return { task, diff };
  });
}

/** Evaluates one diff as the activity does. Throws if it does not pass, since the figure would then be meaningless. */
async function judge({ host, kind }: Bench, solved: readonly Solved[], index: number, signal: AbortSignal) {
  const one = solved[index % solved.length];
  if (one === undefined) throw new Error('expected a task to evaluate, got none');
  const { task, diff } = one;
  const timeoutMs = (task.evaluationTimeoutSec ?? 120) * 1000;
  const input = { epoch: { rollout: randomUUID(), epoch: 1 }, run: '', task, sandbox: kind, diff, timeoutMs };
  const verdict = await evaluate(offline(host), input, { number: 1, report }, signal);
  if (verdict.value === 1) return;
  const log = Buffer.from(await host.store.get(verdict.log.digest))
    .toString('utf8')
    .slice(-1000);
  throw new Error(`${task.id}: expected the reference solution to pass, got ${verdict.kind} ${verdict.value}: ${log}`);
}
