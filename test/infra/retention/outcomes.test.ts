import assert from 'node:assert/strict';
import { constants } from 'node:buffer';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { recordedOutcomes } from '../../../infra/retention/categories/outcomes.ts';
import type { RetentionContext } from '../../../infra/retention/category.ts';
import { recordOutcomes } from '../../../infra/retention/references/outcomes.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import type { Objects } from '../../../infra/store/objects.ts';

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
});
