import { costsOfLedger, moneyOf } from '../../../../infra/report/cost-table.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { sweepStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { SweepRequest, SweepStatus } from '../../../../workflows/contracts/sweep.ts';
import { type StartOptions, startAndFollow } from '../../follow/start-and-follow.ts';
import { withTaskSet } from '../../follow/workflow-input.ts';
import { findSweepReport } from '../../follow/workflow-report.ts';
import { runningConfigOf } from '../../stack/command.ts';
import { setName } from '../../stack/set-name.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { costText } from '../../text/cost.ts';
import { asUsageError, Unsuccessful } from '../../text/errors.ts';
import { print, printJson } from '../../text/output.ts';
import { type SweepOptions, sweepRequestOf } from './sweep-options.ts';
import { sweepText } from './sweep-text.ts';

export interface EvalOptions extends StartOptions, SweepOptions {}

/** Starts a sweep and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function runSweep(options: EvalOptions): Promise<void> {
  const request = await sweepRequestOf(options);
  const prices = await readPrices((await runningConfigOf(options)).prices);
  const { startSweep } = await import('../../follow/start-workflow.ts');
  const { requireSweepTasks } = await import('../../stack/require-tasks.ts');
  const { requireSandboxes } = await import('../../stack/require-sandboxes.ts');
  await startAndFollow(options, {
    noun: 'sweep',
    prefix: 'eval',
    children: 'rollouts',
    cleanedUp: 'all of its rollouts have ended',
    async prepare(stack, signal) {
      await requirePolicy(stack, request.policy);
      const named = await withTaskSet(request, stack, signal);
      await requireSweepTasks(named, stack, signal);
      await requireSandboxes({ choice: named.settings?.sandbox ?? 'auto' }, stack, signal);
      return named;
    },
    start: async (stack, id, request) => startSweep(stack.client, id, request, await setName(stack, request.tasks)),
    async progress(handle) {
      const status = await handle.query(sweepStatusQuery);
      return { line: sweepProgress(status), pausedBecause: status.pausedBecause };
    },
    async report(stack, id) {
      const report = await findSweepReport({ ...stack, server: stack.client }, id);
      if (report === null) return;
      const costs = costsOfLedger(report.result.cost.ledger, { ...report, ...report.result }, prices);
      if (options.json) printJson({ id, ...report.result, money: costs && moneyOf(costs) });
      else {
        const input = { ...report.input, tasks: await setName(stack, report.input.tasks) };
        print(`${sweepText({ ...report, input })}\n\n${costText(costs)}`);
      }
      const { counted, leftOut, endedEarly } = report.result;
      if (endedEarly === null && counted === 0 && leftOut.infra > 0)
        throw new Unsuccessful('no attempt counted: they ended as infra');
    },
  });
}

/** Refuses the name of a run that the server does not have, before the sweep starts. */
async function requirePolicy({ client }: StackClient, policy: SweepRequest['policy']): Promise<void> {
  if (policy === undefined) return;
  const { resolvePolicy } = await import('../../../../infra/temporal/runs.ts');
  await resolvePolicy(client, policy).catch((error: unknown) => {
    throw asUsageError(error);
  });
}

export function sweepProgress(status: SweepStatus): string {
  const { phase, ended, planned, inFlight, counted, passed, meanReward, leftOut, retried, flags } = status;
  const odd = Object.entries(leftOut).filter(([, count]) => count > 0);
  return [
    phase,
    `${ended} of ${planned} attempts ended`,
    `${inFlight} in flight`,
    `${passed} of ${counted} passed`,
    ...(meanReward === null ? [] : [`mean reward ${meanReward.toFixed(2)}`]),
    ...odd.map(([why, count]) => `${why} ${count}`),
    ...(retried === 0 ? [] : [`${retried} retried`]),
    ...(flags.rollouts === 0 ? [] : [`flagged ${flags.rollouts}`]),
  ].join(' · ');
}
