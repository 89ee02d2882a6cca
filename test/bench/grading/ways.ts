import { randomUUID } from 'node:crypto';
import type { Host } from '../../../activities/host/host.ts';
import { captureDiff } from '../../../infra/grading/capture/capture-diff.ts';
import { evaluate } from '../../../infra/grading/evaluate.ts';
import { evaluateInPlace } from '../../../infra/grading/evaluate-in-place.ts';
import { keepSnapshot } from '../../../infra/grading/snapshot/keep-snapshot.ts';
import type { SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';

import { afterSolution, offline, report, type SolvedIn } from './after-solution.ts';
import { median } from './cycle.ts';

/** The ways in which tests get an agent's work. */
const ways = ['fresh', 'snapshot', 'same'] as const;
type Way = (typeof ways)[number];

/** The time from the end of an agent to its verdict, in one way: medians. */
export interface WayFigures {
  readonly way: Way;
  readonly captureMs: number;
  readonly gradeMs: number;
}

export interface WaysBench {
  readonly host: Host;
  readonly provider: SandboxProvider;
  progress(text: string): void;
}

/** A task of the generator, whose tests are short and write a reward. */
const address = 'generated:test/1/0';
const secrets = ['a~secret'];
const mostBytes = 2 ** 32;

/** Measures each way on the same work, by turns and one at a time. */
export async function measureWays(
  bench: WaysBench,
  rounds: number,
  signal: AbortSignal,
): Promise<readonly WayFigures[]> {
  const measured = new Map<Way, { readonly captureMs: number; readonly gradeMs: number }[]>();
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    for (const way of bench.provider.carriesChanges ? ways : ways.filter((one) => one !== 'snapshot')) {
      const one = await afterSolution(bench, address, signal, (solved) => grade(bench, way, solved, signal));
      if (round > 0) measured.set(way, [...(measured.get(way) ?? []), one]);
    }
    bench.progress(`${round} of ${rounds} rounds in each way`);
  }
  return [...measured].map(([way, all]) => ({
    way,
    captureMs: median(all.map(({ captureMs }) => captureMs)),
    gradeMs: median(all.map(({ gradeMs }) => gradeMs)),
  }));
}

async function grade(
  { host, provider }: WaysBench,
  way: Way,
  { sandbox, task, baseCommit }: SolvedIn,
  signal: AbortSignal,
): Promise<{ readonly captureMs: number; readonly gradeMs: number }> {
  const { store } = host;
  const beganAtMs = performance.now();
  const diff = await captureDiff(sandbox, store, { workdir: task.workdir, baseCommit, failedBefore: true }, signal);
  const snapshot =
    way === 'snapshot'
      ? await keepSnapshot(sandbox, store, { secrets, leftOut: [], mostBytes, attempt: 1 }, signal)
      : undefined;
  const capturedAtMs = performance.now();
  const epoch = { rollout: randomUUID(), epoch: 1 };
  const { kind } = provider;
  const input = { epoch, run: '', task, sandbox: kind, diff, timeoutMs: 60_000 };
  const tried = { number: 1, report };
  const verdict =
    way === 'same'
      ? await evaluateInPlace(offline(host), { ...input, kind }, { ...tried, sandbox, secrets }, signal)
      : await evaluate(offline(host), { ...input, ...(snapshot !== undefined && { snapshot }) }, tried, signal);
  requirePassed(way, verdict);
  return { captureMs: capturedAtMs - beganAtMs, gradeMs: performance.now() - capturedAtMs };
}

/** Throws unless the reference solution passed: the figure would then be meaningless. */
function requirePassed(way: Way, { kind, value }: Verdict): void {
  if (value !== 1) throw new Error(`expected the reference solution to pass with ${way}, got ${kind} ${value}`);
}
