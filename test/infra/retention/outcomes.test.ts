import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { recordedOutcomes } from '../../../infra/retention/categories/outcomes.ts';
import { rollouts } from '../../../infra/retention/categories/rollouts.ts';
import type { RetentionContext } from '../../../infra/retention/category.ts';
import { recordOutcomes } from '../../../infra/retention/references/outcomes.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import type { Objects } from '../../../infra/store/objects.ts';
import { recordKey } from '../../../infra/store/rollout-records.ts';
import { resultWithout } from '../../../workflows/algorithms/rollout-end.ts';
import { groupId, rolloutId, sweepRolloutId } from '../../../workflows/contracts/ids.ts';
import { createFileRollouts } from '../../helpers/store/file-store.ts';

/** A server whose list takes a while after its first workflow, whose history it has just removed. */
const server = {
  options: { namespace: 'default' },
  connection: {
    workflowService: {
      describeNamespace: async () => ({ config: { workflowExecutionRetentionTtl: { seconds: 60 } } }),
    },
  },
  workflow: {
    list: async function* () {
      yield { workflowId: 'a', runId: 'a-1', closeTime: new Date() };
      await delay(20);
    },
    getHandle: () => ({ fetchHistory: () => Promise.reject(new Error('the history is gone')) }),
  },
} as unknown as Client;

/** Objects with the outcomes of this day alone. */
const withDay = (bytes: Uint8Array): Pick<Objects, 'list' | 'get'> => ({
  async *list() {
    yield { key: `outcomes/${new Date().toISOString().slice(0, 10)}.jsonl`, size: bytes.length, changedAtMs: 0 };
  },
  get: async () => ({ bytes, version: '1' }),
});

describe('the record of outcomes', () => {
  it('may be longer than any string', async () => {
    const digests = ['a', 'b'].map((digit) => digit.repeat(64));
    // Pages of zeros take no memory. Both outcomes lie behind lines that make the whole too long.
    const day = Buffer.alloc(constants.MAX_STRING_LENGTH + 2 ** 20);
    const lineBytes = 2 ** 27;
    for (let at = lineBytes; at < day.length; at += lineBytes) day.write('\n', at);
    const [first = '', second = ''] = digests.map(
      (digest, index) => `\n{"runId":"${index}","digests":["${digest}"]}\n`,
    );
    day.write(first, lineBytes);
    day.write(second, day.length - second.length);
    const context = { objects: withDay(day), cutoffMs: null } as unknown as RetentionContext;
    const found: string[] = [];
    for await (const { digest } of recordedOutcomes.references(context)) found.push(digest);
    assert.deepEqual(found, digests);
  });

  it('fails as a whole if a history cannot be read while the list still grows', async () => {
    const home = await mkdtemp(join(tmpdir(), 'temper-outcomes-'));
    try {
      const objects = createDirectory(home);
      const knowledge = { client: async () => server };
      const { signal } = new AbortController();
      const context = { objects, knowledge, signal } as unknown as RetentionContext;
      await assert.rejects(recordOutcomes(context), /the history is gone/);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  it('has what records of rollouts refer to, for as long as the records are kept', async () => {
    const home = await mkdtemp(join(tmpdir(), 'temper-outcomes-'));
    try {
      const records = createFileRollouts(home);
      const names = { open: 'a'.repeat(64), planned: 'b'.repeat(64), old: 'c'.repeat(64) };
      const openKey = '01a2065d-b1e9-70d0-904a-334fbb79801c';
      const ids = {
        open: rolloutId(groupId('run', openKey, 0), 0),
        planned: sweepRolloutId('sweep', 'closed-sweep', { task: 0, attempt: 0, retry: 0 }),
        old: rolloutId(groupId('run', 'closed-run', 0), 0),
      };
      for (const name of ['open', 'planned', 'old'] as const) {
        const known = { rollout: name, workflowId: ids[name], task: names[name], agent: 'mini' };
        await records.write({ format: 1, writer: 'reader', result: resultWithout(known, 'gone') });
      }
      for await (const { key } of records.list()) await utimes(join(home, key), 86_400, 86_400);
      const planned = new Set([recordKey(ids.planned) ?? '']);
      const knowledge = {
        client: async () => ({ ...server, workflow: { list: async function* () {} } }),
        openKeys: async () => new Set([openKey]),
        plannedRecords: async () => planned,
      };
      const { signal } = new AbortController();
      const contextOf = (cutoffMs: number | null) =>
        ({
          objects: createDirectory(home),
          knowledge,
          signal,
          cutoffMs,
          nowMs: Date.now(),
        }) as unknown as RetentionContext;
      await recordOutcomes(contextOf(null));
      await recordOutcomes(contextOf(null));
      const referred = async (cutoffMs: number | null): Promise<readonly string[]> => {
        const digests: string[] = [];
        for await (const { digest } of recordedOutcomes.references(contextOf(cutoffMs))) digests.push(digest);
        return digests.toSorted();
      };
      const listedBy = async (cutoffMs: number | null): Promise<readonly string[]> => {
        const listed: string[] = [];
        for await (const { keys = [] } of rollouts.entries(contextOf(cutoffMs))) listed.push(...keys);
        return listed;
      };
      assert.deepEqual(await referred(null), [names.open, names.planned, names.old]);
      assert.deepEqual(await listedBy(null), []);
      const cutoffMs = Date.now();
      assert.deepEqual(await referred(cutoffMs), [names.open, names.planned]);
      assert.deepEqual(await listedBy(cutoffMs), [recordKey(ids.old)]);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});
