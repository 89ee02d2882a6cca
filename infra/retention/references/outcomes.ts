import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { z } from 'zod';
import type { ListedObject, Objects } from '../../store/objects.ts';
import { createRolloutRecords, rolloutFolder } from '../../store/rollout-records.ts';
import { storedJson } from '../../store/stored-json.ts';
import { untilWritten } from '../../store/until-written.ts';
import { settleRollout } from '../../temporal/settle-rollout.ts';
import { dayMs, hourMs, type RetentionContext } from '../category.ts';
import { linesOf, textOf } from '../object-text.ts';
import { digestsIn, digestsInHistory } from './history.ts';

/** A record of a rollout, or a closed workflow without one, and the blobs that it names. */
export const outcome = z.object({
  workflowId: z.string(),
  runId: z.string(),
  /** The key of the record; absent for a workflow whose history was read. */
  record: z.string().optional(),
  closedAtMs: z.number(),
  digests: z.array(z.string()),
});
type Outcome = z.output<typeof outcome>;

const ledger = z.object({
  /** The time up to which all ends are recorded. */
  untilMs: z.number(),
  /** Times in which workflows ended that the server had forgotten before they were recorded. */
  unknown: z.array(z.object({ fromMs: z.number(), toMs: z.number() })),
});
export type Ledger = z.output<typeof ledger>;

/** Types of workflows whose histories name blobs that no other history and no record names. */
const recordedTypes = '"rollout", "trainingStep", "evaluationSweep", "regrade", "trainingRun"';
/** The server's list is behind by up to this time, so the last ends are looked for again. */
const lagMs = hourMs;
/** The part of the time whose ends are recorded together. */
const windowMs = hourMs;
const concurrentReads = 8;

/**
 * Records what the rollouts and the workflows that have ended since the last pass refer to. Temporal forgets a closed workflow after its
 * namespace's retention (a day at the dev server), and its diff, logs and verdict are to be kept for longer. May be killed at
 * any time: an end that is recorded twice does no harm.
 */
export async function recordOutcomes(context: RetentionContext): Promise<Ledger> {
  const client = await context.knowledge.client();
  const nowMs = Date.now();
  const forgottenMs = nowMs - (await retentionMs(client));
  let known = await readLedger(context.objects);
  await recordRecords(context, (known?.untilMs ?? 0) - lagMs);
  if (known === null || known.untilMs < forgottenMs) {
    // Whatever ended in that time is unknown, and so are the references to the blobs of that time. An hour more, because the
    // server may be removing the oldest of what it has.
    const gap = { fromMs: known?.untilMs ?? 0, toMs: forgottenMs + hourMs };
    known = { untilMs: forgottenMs, unknown: [...(known?.unknown ?? []), gap] };
    await writeLedger(context.objects, known);
  }
  while (known.untilMs < nowMs) {
    context.signal.throwIfAborted();
    const toMs = Math.min(known.untilMs + windowMs, nowMs);
    await recordBetween(context, client, known.untilMs - lagMs, toMs);
    known = { ...known, untilMs: toMs };
    await writeLedger(context.objects, known);
  }
  return known;
}

/**
 * Records what the records of rollouts refer to that were written since the last pass. All of them are listed, but only new ones
 * are read, and the server is not asked about their rollouts any more.
 */
async function recordRecords({ objects, signal }: RetentionContext, fromMs: number): Promise<void> {
  const changed: ListedObject[] = [];
  for await (const one of objects.list(rolloutFolder)) if (one.changedAtMs >= fromMs) changed.push(one);
  const written = Map.groupBy(changed, ({ changedAtMs }) => dayKey(changedAtMs));
  const limit = pLimit(concurrentReads);
  for (const [day, found] of written) {
    const recorded = await recordedIn(objects, [day]);
    const added = found.filter(({ key }) => !recorded.has(key));
    const read = async ({ key, changedAtMs }: ListedObject): Promise<Outcome> => {
      signal.throwIfAborted();
      const text = await textOf({ objects }, key);
      const { workflowId = '', rollout = '' } = recordOf.safeParse(asJson(text)).data?.result ?? {};
      return { workflowId, runId: rollout, record: key, closedAtMs: changedAtMs, digests: [...digestsIn(text)] };
    };
    if (added.length > 0) await appendTo(objects, day, await limit.map(added, read));
  }
}

/** The part of a rollout's record that names it. That of a regrade, which lies beside, has none. */
const recordOf = z.object({ result: z.object({ workflowId: z.string(), rollout: z.string() }) });

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Its digests count all the same.
    return null;
  }
}

async function recordBetween(
  { objects, signal }: RetentionContext,
  client: Client,
  fromMs: number,
  toMs: number,
): Promise<void> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  const query = `WorkflowType IN (${recordedTypes}) AND CloseTime BETWEEN "${from}" AND "${to}"`;
  const recorded = await recordedIn(objects, new Set([dayKey(fromMs), dayKey(toMs)]));
  const settling = { client, rollouts: createRolloutRecords(objects) };
  const ended: Omit<Outcome, 'digests'>[] = [];
  for await (const { workflowId, runId, closeTime, type, status } of client.workflow.list({ query })) {
    if (recorded.has(runId) || closeTime === undefined) continue;
    // A rollout that was terminated could not write its record, and one by hand has no other reader who does it.
    if (type === 'rollout' && status.name !== 'COMPLETED') {
      await settleRollout(settling, { workflowId, rollout: runId, task: '' });
    }
    ended.push({ workflowId, runId, closedAtMs: closeTime.getTime() });
  }
  // No history is read before the list is complete: a read that fails while nothing awaits it would end the process.
  const limit = pLimit(concurrentReads);
  const reads = ended.map((execution) =>
    limit(async () => {
      signal.throwIfAborted();
      return { ...execution, digests: [...(await digestsInHistory(client, execution))] };
    }),
  );
  const byDay = Map.groupBy(await Promise.all(reads), ({ closedAtMs }) => dayKey(closedAtMs));
  for (const [key, outcomes] of byDay) await appendTo(objects, key, outcomes);
}

/** Returns the run ids, and the keys of the records, of the outcomes that are recorded for these days. */
async function recordedIn(objects: Objects, days: Iterable<string>): Promise<ReadonlySet<string>> {
  const recorded = new Set<string>();
  for (const day of days) {
    for (const line of await linesOf({ objects }, day)) {
      for (const name of [fieldIn(line, 'runId'), fieldIn(line, 'record')]) if (name !== '') recorded.add(name);
    }
  }
  return recorded;
}

/** Returns a field of an outcome's line, or an empty text if it has none. */
export const fieldIn = (line: string, field: 'runId' | 'record'): string =>
  new RegExp(`"${field}":"([^"]+)"`).exec(line)?.[1] ?? '';

/** Adds lines to the outcomes of a day. An end that another pass records at the same moment does no harm. */
async function appendTo(objects: Objects, key: string, ended: readonly Outcome[]): Promise<void> {
  const lines = Buffer.from(ended.map((one) => `${JSON.stringify(one)}\n`).join(''));
  await untilWritten(`${objects.location}/${key}`, async () => {
    const found = await objects.get(key);
    const all = Buffer.concat([found?.bytes ?? new Uint8Array(), lines]);
    return (await objects.replace(key, all, found?.version ?? null)) ?? undefined;
  });
}

/** The key of the outcomes of a day. */
const dayKey = (ms: number): string => `outcomes/${new Date(ms).toISOString().slice(0, 10)}.jsonl`;

/** The time at which the day of a record of outcomes is over; null for another name. */
export function dayEndMs(name: string): number | null {
  const [, day] = /^(\d{4}-\d\d-\d\d)\.jsonl$/.exec(name) ?? [];
  return day === undefined ? null : Date.parse(`${day}T00:00:00Z`) + dayMs;
}

const ledgerKey = 'outcomes/ledger.json';

async function readLedger(objects: Objects): Promise<Ledger | null> {
  const found = await objects.get(ledgerKey);
  return found === null ? null : ledger.parse(storedJson(`${objects.location}/${ledgerKey}`, found.bytes));
}

async function writeLedger(objects: Objects, value: Ledger): Promise<void> {
  const found = await objects.get(ledgerKey);
  const written = await objects.replace(ledgerKey, Buffer.from(JSON.stringify(value)), found?.version ?? null);
  if (written === null) throw new Error(`another pass of retention works on ${objects.location} at the same time`);
}

async function retentionMs(client: Client): Promise<number> {
  const { namespace } = client.options;
  const { config } = await client.connection.workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  if (seconds > 0) return seconds * 1000;
  throw new Error(`expected the retention of the namespace ${namespace}, got none`);
}
