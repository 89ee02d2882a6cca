import { InvalidModelDirectory, loadModel } from '../../../../infra/kits/chat-tokens/index.ts';
import { collectReport } from '../../../../infra/report/collect-report.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import type { HeldOut, ReportData, RunFacts } from '../../../../infra/report/report-data.ts';
import type { TokenName } from '../../../../infra/report/token-views.ts';
import { readStartInput } from '../../../../infra/temporal/start-input.ts';
import { runStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type RunInput, type RunStatus, runInput } from '../../../../workflows/contracts/run.ts';
import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import { findWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { endOf } from '../../follow/workflow-end.ts';
import { findSweepReport } from '../../follow/workflow-report.ts';
import type { StackClient } from '../../stack/stack-client.ts';

const endedSweeps =
  'WorkflowType="evaluationSweep" AND ExecutionStatus != "Running" AND ExecutionStatus != "ContinuedAsNew"';
/** Most sweeps that the report shows. */
const mostSweeps = 50;
/** The largest number of sweeps that are searched, since the server lists those of all runs. */
const mostSearched = 500;

/** Gathers the data of a run's report from its records and from the server. */
export async function gatherReport(stack: StackClient, run: string, heldOut: HeldOut | null): Promise<ReportData> {
  const { client } = stack;
  const found = await findWorkflow(client, run);
  if (found.kind !== 'trainingRun') throw new Error(`${run} is a ${found.kind}; expected a training run`);
  // A refused run never began, so that it answers no query.
  const why = isOpen(found) ? null : await endOf(found.handle);
  if (why?.kind === 'refused') {
    throw new Error(
      `${run} has no report: its input was refused, so that it never began: ${why.message}; start it again with another input`,
    );
  }
  const status: RunStatus = await found.handle.query(runStatusQuery);
  const first = await client.workflow.getHandle(run, status.runKey).describe();
  const end = isOpen(found) ? new Date() : (found.description.closeTime ?? new Date());
  const start = await readStartInput(client, { workflowId: run, runId: status.runKey });
  const input = runInput.parse(start ?? {});
  return collectReport({
    records: stack.records,
    store: stack.store,
    run: factsOf(input, status),
    pricing: { sampler: { pool: input.pool }, prices: await readPrices(stack.config.prices) },
    status,
    heldOut,
    sweeps: await sweepsOf(stack, run),
    nameOf: await tokenNames(stack.config.modelDir),
    wallSeconds: (end.getTime() - first.startTime.getTime()) / 1000,
    findRollout: async (workflowId) => (await stack.shared.rollouts.find({ workflowId }))?.result ?? null,
  });
}

/** Finds the newest sweeps that evaluated this run's policy. */
async function sweepsOf(stack: StackClient, run: string): Promise<readonly SweepReport[]> {
  const found: SweepReport[] = [];
  let searched = 0;
  for await (const { workflowId } of stack.client.workflow.list({ query: endedSweeps })) {
    const report = await findSweepReport(stack, workflowId);
    if (report?.run === run) found.push(report);
    searched += 1;
    if (found.length === mostSweeps || searched === mostSearched) break;
  }
  return found;
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

function factsOf(input: RunInput, { run, runKey, steps }: RunStatus): RunFacts {
  return {
    id: run,
    key: runKey,
    tasks: input.tasks,
    agent: input.settings.agent,
    sandbox: input.settings.sandbox,
    stepsAsked: steps,
    groupsPerStep: input.groupsPerStep,
    rolloutsPerGroup: input.rolloutsPerGroup,
    maxStaleness: input.maxStaleness,
    seed: input.seed,
  };
}
