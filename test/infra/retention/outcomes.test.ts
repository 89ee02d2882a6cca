import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { RetentionContext } from '../../../infra/retention/category.ts';
import { recordOutcomes } from '../../../infra/retention/references/outcomes.ts';
import { createDirectory } from '../../../infra/store/directory.ts';

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

describe('the record of outcomes', () => {
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
