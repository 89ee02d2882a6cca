import type { Client } from '@temporalio/client';
import { z } from 'zod';
import type { Agent } from '../../infra/agents/agent.ts';
import { lackText } from '../../infra/egress/grant-network.ts';
import type { Serving, VersionPin } from '../../infra/gateway/control.ts';
import { sweepOfRun } from '../../infra/report/run-records.ts';
import { readChunks, writeChunk } from '../../infra/store/chunks.ts';
import type { Records } from '../../infra/store/records.ts';
import type { RolloutRecords } from '../../infra/store/rollout-records.ts';
import type { StartRecords } from '../../infra/store/start-records.ts';
import type { Store } from '../../infra/store/store.ts';
import { lackingAmong, requireNetworks } from '../../infra/tasks/lacking-network.ts';
import type { Quarantine } from '../../infra/tasks/quarantine.ts';
import { chooseSweepTasks } from '../../infra/tasks/sweep-tasks.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { findRun, newestRun, resolvePolicy } from '../../infra/temporal/runs.ts';
import { settleRollout } from '../../infra/temporal/settle-rollout.ts';
import { summariseSweep } from '../../workflows/algorithms/summarise-sweep.ts';
import { attemptOf, toSweepRow } from '../../workflows/algorithms/sweep-row.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sweepRolloutId } from '../../workflows/contracts/ids.ts';
import type { NetworkMode } from '../../workflows/contracts/network.ts';
import type { PolicyRef } from '../../workflows/contracts/policy.ts';
import type { AgentOptions } from '../../workflows/contracts/rollout.ts';
import type { SweepInput, SweepPlan, SweepRow, TaskLeftOut } from '../../workflows/contracts/sweep.ts';
import type { Upstream } from '../../workflows/contracts/upstream.ts';
import { atBoundary } from '../boundary.ts';
import type { EndedRollouts, SweepActivities } from '../interfaces/control.ts';

export interface SweepDependencies {
  readonly client: Client;
  readonly tasks: Pick<Tasks, 'first' | 'list' | 'find'>;
  /** The network that tasks may have at most. */
  readonly network: NetworkMode;
  readonly quarantine: Pick<Quarantine, 'byAddress'>;
  readonly store: Store;
  readonly records: Records;
  readonly rollouts: Pick<RolloutRecords, 'find' | 'write'>;
  readonly starts: Pick<StartRecords, 'write'>;
  agent(name: string, options?: AgentOptions): Pick<Agent, 'usesModel'>;
  /** Returns the versions of a policy that the engines serve, as the gateway knows them. */
  serving(policy: PolicyRef | null, signal: AbortSignal): Promise<Serving>;
  /** Pins a version, so that the engines keep serving it. Returns false if they can't, or no longer serve it. */
  pinVersion(pin: VersionPin, signal: AbortSignal): Promise<boolean>;
  /** Looks an upstream model up; refuses a name that is not configured. */
  upstream(name: string, signal: AbortSignal): Promise<Upstream>;
}

/** The largest size of the rows in one answer in bytes, which is one value of history. */
const answerBytes = 6_000;
/** The number of rollouts whose state is requested at the same time. */
const concurrentQueries = 16;

const addressList = z.array(z.string()).min(1);
const leftOutList = z.array(z.object({ address: z.string(), why: z.string() }));
/** The name of the records that hold the rows of a sweep. */
const rowsName = 'rollouts';

/** Creates the activities of a sweep: they plan it, read the ends of rollouts, and write records and the report. */
export function createSweepActivities(deps: SweepDependencies): SweepActivities {
  const { store, records } = deps;
  /** The list that was read last: a sweep that is cancelled asks for it once for each of its rollouts. */
  let last: { readonly digest: string; readonly list: Promise<readonly string[]> } | null = null;
  async function readList(digest: string): Promise<readonly string[]> {
    if (last?.digest !== digest) last = { digest, list: store.getJson(digest).then((list) => addressList.parse(list)) };
    const { list } = last;
    list.catch(() => {
      last = null;
    });
    return list;
  }
  return {
    planSweep: ({ sweep, sweepKey, startedAt, input }) =>
      atBoundary(async (signal) => {
        await deps.starts.write({ kind: 'evaluationSweep', id: sweep, key: sweepKey, startedAt, input });
        const evaluated = await chooseEvaluated(deps, input, signal);
        const { addresses: chosen, quarantined } = await chooseSweepTasks(deps, input);
        const { addresses, lacking } = await withNetworks(deps, input, chosen, signal);
        return {
          tasks: addresses.length,
          list: await store.putJson(addresses),
          ...evaluated,
          ...(quarantined.length > 0 && { quarantined: await store.putJson(quarantined) }),
          ...(lacking.length > 0 && { lacking: await store.putJson(lacking) }),
        };
      }),
    readAddresses: ({ list, from, count }) =>
      atBoundary(async () => ({ addresses: (await readList(list)).slice(from, from + count) })),
    endedRollouts: (input) => atBoundary(async () => endedRollouts(deps, input, await readList(input.list))),
    recordSweepRows: ({ sweepKey, chunk, rows }) =>
      atBoundary(() => writeChunk(records, { runKey: sweepKey, name: rowsName }, chunk, rows)),
    summariseSweep: ({ chunks, plan, ...sweep }) =>
      atBoundary(async () => {
        const rows = await readChunks(records, { runKey: sweep.sweepKey, name: rowsName }, chunks);
        const { policyVersion, run, upstream, policy } = plan;
        const pin = { policyVersion, ...(upstream !== undefined && { upstream }) };
        const tasks = await readList(plan.list.digest);
        const quarantined = plan.quarantined === undefined ? [] : await readList(plan.quarantined.digest);
        const lacking = plan.lacking === undefined ? [] : leftOutList.parse(await store.getJson(plan.lacking.digest));
        const report = summariseSweep({
          ...sweep,
          pin,
          run,
          ...(policy && { pool: policy.pool }),
          tasks,
          rows: rows as readonly SweepRow[],
          quarantined,
          lacking,
        });
        const blob = await store.putJson(report);
        await records.write(sweep.sweepKey, 'sweep', { report: blob });
        if (policy !== undefined) await records.write(policy.runKey, sweepOfRun(sweep), { report: blob });
        return { ...report.result, report: blob };
      }),
  };
}

/** Decides on the policy version or the upstream model to evaluate; neither if the agent calls no model. */
async function chooseEvaluated(
  deps: SweepDependencies,
  input: SweepInput,
  signal: AbortSignal,
): Promise<Pick<SweepPlan, 'policyVersion' | 'run' | 'policy' | 'upstream'>> {
  const { usesModel } = deps.agent(input.settings.agent, input.settings.agentOptions);
  if (input.upstream !== undefined) {
    const upstream = await deps.upstream(input.upstream, signal);
    if (usesModel) return { policyVersion: null, run: null, upstream };
    throw new TemperFailure(
      'InvalidInput',
      `settings.agent: expected an agent that calls a model, got ${input.settings.agent}; it would not call ${input.upstream}`,
    );
  }
  if (!usesModel) return { policyVersion: null, run: null };
  const run = input.policy === undefined ? await newestRun(deps.client) : await findRun(deps.client, input.policy);
  if (run === null) {
    await resolvePolicy(deps.client, input.policy); // refuses a name that no run has
    return { policyVersion: await pinned(deps, input, null, signal), run: null };
  }
  const policy = { runKey: run.runKey, pool: run.pool };
  return { policyVersion: await pinned(deps, input, policy, signal), run: run.run, policy };
}

/** Pins the version to evaluate. If another one was published before it could be pinned, pins that one. */
async function pinned(
  { serving, pinVersion }: SweepDependencies,
  input: SweepInput,
  policy: PolicyRef | null,
  signal: AbortSignal,
): Promise<number | null> {
  const version = versionToPin(input, await serving(policy, signal));
  if (version === null || (await pinVersion({ policy, version }, signal))) return version;
  const later = versionToPin(input, await serving(policy, signal));
  if (later !== null && later !== version) await pinVersion({ policy, version: later }, signal);
  return later;
}

/** Refuses a sweep with tasks that lack a network, or leaves these out if its input says so. */
async function withNetworks(
  { tasks, network }: SweepDependencies,
  { tasks: set, leaveOut, settings: { offlineTests } }: SweepInput,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly addresses: readonly string[]; readonly lacking: readonly TaskLeftOut[] }> {
  const found = await lackingAmong(tasks, { set, addresses }, { cap: network, offlineTests }, signal);
  if (leaveOut === undefined) requireNetworks(set, found);
  const lacking = found.lacking.map(({ address, id, lack }) => ({ address, why: `${id}${lackText(lack)}` }));
  const left = new Set(lacking.map(({ address }) => address));
  const rest = addresses.filter((address) => !left.has(address));
  if (rest.length > 0) return { addresses: rest, lacking };
  throw new TemperFailure(
    'UnknownTask',
    `${set}: expected tasks that have the network that they need, got none, for example ${lacking[0]?.why}`,
  );
}

function versionToPin({ policyVersion }: SweepInput, { version, versions }: Serving): number | null {
  if (policyVersion === undefined) return version;
  if (versions.includes(policyVersion)) return policyVersion;
  const got = versions.length === 0 ? 'none that was published' : versions.join(', ');
  throw new TemperFailure(
    'VersionNotServed',
    `policyVersion: expected a version that the engines serve, got ${policyVersion} where they serve ${got}; leave it out to evaluate the one in service`,
  );
}

async function endedRollouts(
  deps: SweepDependencies,
  { sweep, sweepKey, tasks, rollouts }: EndedRollouts,
  addresses: readonly string[],
) {
  const rows: SweepRow[] = [];
  let bytes = 0;
  for (let from = 0; from < rollouts.length; from += concurrentQueries) {
    const asked = rollouts.slice(from, from + concurrentQueries);
    const found = await Promise.all(
      asked.map(async ([number, retry]) => {
        const attempt = attemptOf(number, retry, tasks);
        const workflowId = sweepRolloutId(sweep, sweepKey, attempt);
        const record = await settleRollout(deps, { workflowId, task: addresses[attempt.task] ?? '' });
        return record === null ? null : toSweepRow(attempt, record.result);
      }),
    );
    for (const row of found) {
      if (row === null) continue;
      bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
      if (rows.length > 0 && bytes > answerBytes) return { rows, more: true };
      rows.push(row);
    }
  }
  return { rows, more: false };
}
