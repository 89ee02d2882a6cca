import { InvalidModelDirectory, loadModel } from '../../../../infra/kits/chat-tokens/index.ts';
import { collectReport } from '../../../../infra/report/collect-report.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import type { HeldOut, ReportData, RunFacts } from '../../../../infra/report/report-data.ts';
import { sweepReportsOf } from '../../../../infra/report/run-records.ts';
import type { TokenName } from '../../../../infra/report/token-views.ts';
import { type RunInput, type RunStatus, runInput } from '../../../../workflows/contracts/run.ts';
import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import { findKnown, requireKind, startOf } from '../../follow/find-known.ts';
import { readRunState } from '../../follow/run-state.ts';
import { setName } from '../../stack/set-name.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';

/** Most sweeps that the report shows. */
const mostSweeps = 50;

/** Gathers the data of a run's report from its records, and from the server while it runs. */
export async function gatherReport(stack: ReadableStack, run: string, heldOut: HeldOut | null): Promise<ReportData> {
  const known = requireKind(await findKnown(stack, run), 'trainingRun', 'a training run');
  const { key } = known;
  const { status, end, endedAt, isRunning } = await readRunState(stack, known);
  // A refused run never began, so that it answers no query.
  if (end?.kind === 'refused') {
    throw new Error(
      `${run} has no report: its input was refused, so that it never began: ${end.message}; start it again with another input`,
    );
  }
  const start = await startOf(stack, known);
  const input = runInput.parse(start.input);
  const endMs = isRunning ? Date.now() : endedAt;
  return collectReport({
    records: stack.records,
    store: stack.store,
    run: { ...factsOf(input, { run, runKey: key }), tasks: await setName(stack, input.tasks) },
    pricing: { sampler: { pool: input.pool }, prices: await readPrices(stack.config.prices) },
    status,
    heldOut,
    sweeps: await sweepsOf(stack, key),
    nameOf: await tokenNames(stack.config.modelDir),
    wallSeconds: endMs === null ? null : (endMs - start.startedAt) / 1000,
    findRollout: async (workflowId) => (await stack.shared.rollouts.find({ workflowId }))?.result ?? null,
  });
}

/** Reads the reports of the newest sweeps that evaluated this run's policy. */
async function sweepsOf({ records, store }: ReadableStack, runKey: string): Promise<readonly SweepReport[]> {
  const digests = await sweepReportsOf(records, runKey, mostSweeps);
  return (await Promise.all(digests.map((digest) => store.getJson(digest)))) as SweepReport[];
}

/** Loads the names of the model's tokens; null if the model is on another machine, so that the report omits them. */
async function tokenNames(modelDir: string): Promise<TokenName | null> {
  try {
    return (await loadModel(modelDir)).tokens.nameOf;
  } catch (error) {
    if (error instanceof InvalidModelDirectory) return null;
    throw error;
  }
}

function factsOf(input: RunInput, { run, runKey }: Pick<RunStatus, 'run' | 'runKey'>): RunFacts {
  return {
    id: run,
    key: runKey,
    tasks: input.tasks,
    agent: input.settings.agent,
    sandbox: input.settings.sandbox,
    stepsAsked: input.steps,
    groupsPerStep: input.groupsPerStep,
    rolloutsPerGroup: input.rolloutsPerGroup,
    maxStaleness: input.maxStaleness,
    seed: input.seed,
  };
}
