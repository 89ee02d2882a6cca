import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { z } from 'zod';
import { writeOnce } from '../../store/files.ts';
import { dayMs, hourMs, type RetentionContext } from '../category.ts';
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
  let known = await readLedger(context.paths.outcomes);
  if (known === null || known.untilMs < forgottenMs) {
    // Whatever ended in that time is unknown, and so are the references to the blobs of that time. An hour more, because the
    // server may be removing the oldest of what it has.
    const gap = { fromMs: known?.untilMs ?? 0, toMs: forgottenMs + hourMs };
    known = { untilMs: forgottenMs, unknown: [...(known?.unknown ?? []), gap] };
    await writeLedger(context.paths.outcomes, known);
  }
  while (known.untilMs < nowMs) {
    context.signal.throwIfAborted();
    const toMs = Math.min(known.untilMs + windowMs, nowMs);
    await recordBetween(context, client, known.untilMs - lagMs, toMs);
    known = { ...known, untilMs: toMs };
    await writeLedger(context.paths.outcomes, known);
  }
  return known;
}

async function recordBetween(
  { paths, signal }: RetentionContext,
  client: Client,
  fromMs: number,
  toMs: number,
): Promise<void> {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  const query = `WorkflowType IN (${recordedTypes}) AND CloseTime BETWEEN "${from}" AND "${to}"`;
  const recorded = await recordedRuns(paths.outcomes, fromMs, toMs);
  const limit = pLimit(concurrentReads);
  const reads: Promise<void>[] = [];
  for await (const { workflowId, runId, closeTime } of client.workflow.list({ query })) {
    if (recorded.has(runId) || closeTime === undefined) continue;
    const closedAtMs = closeTime.getTime();
    reads.push(
      limit(async () => {
        signal.throwIfAborted();
        const digests = await digestsInHistory(client, { workflowId, runId });
        const line: z.output<typeof outcome> = { workflowId, runId, closedAtMs, digests: [...digests] };
        await appendFile(dayFile(paths.outcomes, closedAtMs), `${JSON.stringify(line)}\n`, { flush: true });
      }),
    );
  }
  await Promise.all(reads);
}

/** The run ids of the outcomes that are recorded for the days of this time. */
async function recordedRuns(directory: string, fromMs: number, toMs: number): Promise<ReadonlySet<string>> {
  const files = new Set([dayFile(directory, fromMs), dayFile(directory, toMs)]);
  const texts = await Promise.all([...files].map(readOrEmpty));
  return new Set(texts.flatMap((text) => [...text.matchAll(/"runId":"([^"]+)"/g)].map(([, id = '']) => id)));
}

/** The file of the outcomes of a day. */
function dayFile(directory: string, ms: number): string {
  return join(directory, `${new Date(ms).toISOString().slice(0, 10)}.jsonl`);
}

/** The time at which the day of a file of outcomes is over; null for another file. */
export function dayEndMs(name: string): number | null {
  const [, day] = /^(\d{4}-\d\d-\d\d)\.jsonl$/.exec(name) ?? [];
  return day === undefined ? null : Date.parse(`${day}T00:00:00Z`) + dayMs;
}

async function readLedger(directory: string): Promise<Ledger | null> {
  const text = await readOrEmpty(ledgerFile(directory));
  return text === '' ? null : ledger.parse(JSON.parse(text));
}

function writeLedger(directory: string, value: Ledger): Promise<void> {
  return writeOnce(ledgerFile(directory), JSON.stringify(value));
}

const ledgerFile = (directory: string): string => join(directory, 'ledger.json');

function readOrEmpty(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

async function retentionMs(client: Client): Promise<number> {
  const { namespace } = client.options;
  const { config } = await client.connection.workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  if (seconds > 0) return seconds * 1000;
  throw new Error(`expected the retention of the namespace ${namespace}, got none`);
}
