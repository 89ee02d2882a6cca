import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { z } from 'zod';
import type { Objects } from '../../store/objects.ts';
import { untilWritten } from '../../store/until-written.ts';
import { dayMs, hourMs, type RetentionContext } from '../category.ts';
import { linesOf } from '../object-text.ts';
import { digestsInHistory } from './history.ts';

/** A closed workflow and the blobs that its history names. */
export const outcome = z.object({
  workflowId: z.string(),
  runId: z.string(),
  closedAtMs: z.number(),
  digests: z.array(z.string()),
});

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
 * Records what the workflows that have ended since the last pass refer to. Temporal forgets a closed workflow after its
 * namespace's retention (a day at the dev server), and its diff, logs and verdict are to be kept for longer. May be killed at
 * any time: an end that is recorded twice does no harm.
 */
export async function recordOutcomes(context: RetentionContext): Promise<Ledger> {
  const client = await context.knowledge.client();
  const nowMs = Date.now();
  const forgottenMs = nowMs - (await retentionMs(client));
  let known = await readLedger(context.objects);
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

async function recordBetween(
  { objects, signal }: RetentionContext,
  client: Client,
  fromMs: number,
  toMs: number,
): Promise<void> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  const query = `WorkflowType IN (${recordedTypes}) AND CloseTime BETWEEN "${from}" AND "${to}"`;
  const recorded = await recordedRuns(objects, fromMs, toMs);
  const ended: Omit<z.output<typeof outcome>, 'digests'>[] = [];
  for await (const { workflowId, runId, closeTime } of client.workflow.list({ query })) {
    if (recorded.has(runId) || closeTime === undefined) continue;
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

/** The run ids of the outcomes that are recorded for the days of this time. */
async function recordedRuns(objects: Objects, fromMs: number, toMs: number): Promise<ReadonlySet<string>> {
  const keys = new Set([dayKey(fromMs), dayKey(toMs)]);
  const recorded = new Set<string>();
  for (const key of keys) {
    for (const line of await linesOf({ objects }, key)) recorded.add(runIdIn(line));
  }
  return recorded;
}

/** Returns the run id in an outcome's line, or an empty text if the line has none. */
export const runIdIn = (line: string): string => /"runId":"([^"]+)"/.exec(line)?.[1] ?? '';

/** Adds lines to the outcomes of a day. An end that another pass records at the same moment does no harm. */
async function appendTo(objects: Objects, key: string, ended: readonly z.output<typeof outcome>[]): Promise<void> {
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
  return found === null ? null : ledger.parse(JSON.parse(Buffer.from(found.bytes).toString()));
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
