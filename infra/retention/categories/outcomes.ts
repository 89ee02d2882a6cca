import type { Category, RetentionContext } from '../category.ts';
import { linesOf } from '../object-text.ts';
import { nameOf } from '../objects.ts';
import { digestsIn } from '../references/history.ts';
import { dayEndMs, fieldIn } from '../references/outcomes.ts';
import type { Root } from '../references/roots.ts';
import { neededRecords } from './rollouts.ts';

/** The references of rollouts and of other closed workflows, one object per day. */
export const outcomes: Category = {
  name: 'outcomes',
  keeps:
    'everything, and so the diffs, snapshots, traces, logs and verdicts of all rollouts; `--older-than` removes what ended before, but for rollouts whose records are kept',
  folder: 'outcomes',
  where: () => [],
  async *entries(context) {
    const { objects } = context;
    for await (const { key, size: bytes } of objects.list('outcomes')) {
      const expired = isExpired(context, nameOf(key)) ? 'ended before the given age' : null;
      const remove = (): Promise<number> => removeDay(context, key, bytes);
      yield { name: nameOf(key), path: `${objects.location}/${key}`, keys: [key], bytes, expired, remove };
    }
  },
};

/** The references of recorded outcomes, without those of the outcomes that go. */
export const recordedOutcomes: Root = {
  name: 'outcomes',
  owner: 'retention itself, for the records of rollouts and the results of closed workflows',
  async *references(context) {
    for await (const { key } of context.objects.list('outcomes')) {
      const isGoing = isExpired(context, nameOf(key));
      const lines = isGoing ? await neededLines(context, key) : await linesOf(context, key);
      for (const line of lines) for (const digest of digestsIn(line)) yield { digest, mayRefer: false };
    }
  },
};

function isExpired({ cutoffMs }: RetentionContext, name: string): boolean {
  const end = dayEndMs(name);
  return cutoffMs !== null && end !== null && end < cutoffMs;
}

async function removeDay(context: RetentionContext, key: string, bytes: number): Promise<number> {
  const { objects } = context;
  const found = await objects.get(key);
  if (found === null) return bytes;
  const needed = await neededLines(context, key);
  if (needed.length === 0) return (await objects.remove(key)) ? bytes : 0;
  const kept = Buffer.from(`${needed.join('\n')}\n`);
  // If another pass changes it at the same moment, the next one tries again.
  return (await objects.replace(key, kept, found.version)) === null ? 0 : bytes - kept.byteLength;
}

/** Returns the lines of a day whose rollouts an open workflow needs. */
async function neededLines(context: RetentionContext, key: string): Promise<readonly string[]> {
  const isNeeded = await neededRecords(context);
  const needed: string[] = [];
  for (const line of await linesOf(context, key)) if (isNeeded(fieldIn(line, 'record'))) needed.push(line);
  return needed;
}
