import { readFile, stat } from 'node:fs/promises';
import { writeOnce } from '../../store/files.ts';
import type { Category, RetentionContext } from '../category.ts';
import { listDirectory } from '../directories.ts';
import { digestsIn } from '../references/history.ts';
import { dayEndMs } from '../references/outcomes.ts';
import type { Root } from '../references/roots.ts';
import { removeTree } from '../trees.ts';

/** The references of closed workflows, one file per day. */
export const outcomes: Category = {
  name: 'outcomes',
  keeps:
    'everything, and so the diffs, traces, logs and verdicts of all rollouts; `--older-than` removes what ended before, but for the rollouts that an open regrade grades',
  where: ({ paths }) => [paths.outcomes],
  async *entries(context) {
    for (const { name, path } of await listDirectory(context.paths.outcomes)) {
      const { size: bytes } = await stat(path);
      const expired = isExpired(context, name) ? 'ended before the given age' : null;
      yield { name, path, bytes, expired, remove: () => removeDay(context, path, bytes) };
    }
  },
};

/** The references of recorded outcomes, without those of the outcomes that go. */
export const recordedOutcomes: Root = {
  name: 'outcomes',
  owner: 'retention itself, for the results of closed workflows',
  async *references(context) {
    for (const { name, path } of await listDirectory(context.paths.outcomes)) {
      const lines = isExpired(context, name) ? await neededLines(context, path) : [await readFile(path, 'latin1')];
      for (const line of lines) for (const digest of digestsIn(line)) yield { digest, mayRefer: false };
    }
  },
};

function isExpired({ cutoffMs }: RetentionContext, name: string): boolean {
  const end = dayEndMs(name);
  return cutoffMs !== null && end !== null && end < cutoffMs;
}

async function removeDay(context: RetentionContext, path: string, bytes: number): Promise<number> {
  const needed = await neededLines(context, path);
  if (needed.length === 0) {
    await removeTree(path);
    return bytes;
  }
  const text = `${needed.join('\n')}\n`;
  await writeOnce(path, text);
  return bytes - Buffer.byteLength(text);
}

/** Returns the lines of a day whose rollouts an open regrade is to grade: its plan names their executions. */
async function neededLines(context: RetentionContext, path: string): Promise<readonly string[]> {
  const planned = await context.knowledge.plannedRuns(context.paths.runs);
  if (planned.size === 0) return [];
  const lines = (await readFile(path, 'utf8')).split('\n');
  return lines.filter((line) => planned.has(/"runId":"([^"]+)"/.exec(line)?.[1] ?? ''));
}
