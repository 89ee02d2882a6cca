import { costsOfLedger, moneyOf } from '../../../../infra/report/cost-table.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { blobAddress, packedAddress } from '../../../../infra/tasks/address.ts';
import { indexById } from '../../../../infra/tasks/find-task.ts';
import { regradeStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type RegradeRequest, type RegradeStatus, regradeInput } from '../../../../workflows/contracts/regrade.ts';
import type { TaskAddress } from '../../../../workflows/contracts/task.ts';
import { type StartOptions, startAndFollow } from '../../follow/start-and-follow.ts';
import { defined, requireValid } from '../../follow/workflow-input.ts';
import { findRegradeReport } from '../../follow/workflow-report.ts';
import { runningConfigOf } from '../../stack/command.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { openTaskSource } from '../../stack/task-source.ts';
import { costText } from '../../text/cost.ts';
import { asUsageError } from '../../text/errors.ts';
import { counted, note, print, printJson } from '../../text/output.ts';
import { regradeText, statesText } from './regrade-text.ts';

export interface RegradeOptions extends StartOptions {
  readonly run?: string;
  readonly grader?: string;
  readonly tasks?: string;
  readonly repeat?: number;
  readonly concurrency?: number;
  readonly reuseVerdicts?: true;
}

/** Starts a regrade and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function runRegrade(rollouts: readonly string[], options: RegradeOptions): Promise<void> {
  const request = requestOf(rollouts, options);
  const prices = await readPrices((await runningConfigOf(options)).prices);
  const { startRegrade } = await import('../../follow/start-workflow.ts');
  const { requireFinished } = await import('../../../../activities/control/regrades/list-finished.ts');
  await startAndFollow(options, {
    noun: 'regrade',
    prefix: 'regrade',
    children: 'evaluations',
    cleanedUp: 'its sandboxes are removed',
    async prepare(stack, signal) {
      await requireFinished({ client: stack.client, rollouts: stack.shared.rollouts }, request).catch(
        (error: unknown) => {
          throw asUsageError(error);
        },
      );
      const { tasks } = options;
      const packed = tasks === undefined ? {} : { tasks: await packTasks(tasks, stack, signal) };
      return { ...request, ...packed };
    },
    start: ({ client }, id, regrade) => startRegrade(client, id, regrade),
    async progress(handle) {
      const status = await handle.query(regradeStatusQuery);
      return { line: regradeProgress(status), pausedBecause: status.pausedBecause };
    },
    async report(stack, id) {
      const report = await findRegradeReport({ ...stack, server: stack.client }, id);
      if (report === null) return;
      const { result, rows, startedAt, endedAt } = report;
      const wallSeconds = (endedAt - startedAt) / 1000;
      const costs = costsOfLedger(result.cost, {}, prices);
      if (options.json) printJson({ id, ...result, wallSeconds, money: costs && moneyOf(costs), rows });
      else print(showHidden(`${regradeText(report)}\n\n${costText(costs)}`));
    },
  });
}

/** Builds the regrade's input and checks it before anything starts. */
function requestOf(named: readonly string[], options: RegradeOptions): RegradeRequest {
  const { run, grader, repeat, concurrency, reuseVerdicts } = options;
  const rollouts = named.length === 0 ? undefined : [...named];
  const request: RegradeRequest = defined({ run, rollouts, grader, repeat, concurrency, reuseVerdicts });
  requireValid('regrade', regradeInput, request);
  return request;
}

/**
 * Packs the tasks that the user named into the store, so that later changes to their directory have no effect. Returns
 * the address of an index of the packed tasks by id.
 */
async function packTasks(named: string, { config, store }: StackClient, signal: AbortSignal): Promise<string> {
  const { tasks, address } = await openTaskSource(named, { config, store, offline: false });
  const packed = await indexById(named, tasks.scan(address), async ({ id, pack }): Promise<TaskAddress> => {
    signal.throwIfAborted();
    return packedAddress((await pack()).bundle.digest, id);
  }).catch((error: unknown) => {
    throw asUsageError(error, '--tasks');
  });
  note(`packed ${counted(packed.size, 'task')} of ${named}`);
  return blobAddress((await store.putJson(Object.fromEntries(packed))).digest);
}

export function regradeProgress(status: RegradeStatus): string {
  const { phase, ended, rollouts, inFlight, states } = status;
  return [phase, `${ended} of ${rollouts} rollouts graded`, `${inFlight} in flight`, ...statesText(states)].join(' · ');
}
