import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openSharedState } from '../../infra/store/shared-state.ts';
import { workerIdentity } from '../../infra/temporal/worker-identity.ts';
import { checkClocks, skewOfServer } from '../../workers/check-clocks.ts';

const minutes = 60_000;

/** A server whose clock is ahead of this one, and that has seen this process poll from the second question on. */
function serverAhead(aheadMs: number): () => Promise<number | null> {
  let asked = 0;
  return async () => {
    asked += 1;
    return asked === 1 ? null : Math.floor((Date.now() + aheadMs) / 1000) * 1000;
  };
}

describe('the clock of a Temporal server', () => {
  for (const [what, aheadMs] of [
    ['ahead', 6 * minutes],
    ['behind', -6 * minutes],
    ['right', 0],
  ] as const) {
    it(`is found ${what} by the first poll of this process`, async (t) => {
      const skewMs = (await skewOfServer(serverAhead(aheadMs), t.signal)) ?? Number.NaN;
      assert.ok(Math.abs(skewMs - aheadMs) < minutes, String(skewMs));
    });
  }

  it('is not judged by a poll from before the first question', async (t) => {
    const polls = [Date.now() - 4 * minutes, Date.now() - 4 * minutes, Date.now()];
    const skewMs = await skewOfServer(async () => polls.shift() ?? null, t.signal);
    assert.ok(skewMs !== null && Math.abs(skewMs) < minutes, String(skewMs));
  });
});

describe('the clocks of a host', () => {
  it('are named in a note when they differ by minutes, refused above five, and the note goes when they are right', async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'temper-clocks-'));
    t.after(() => rm(root, { recursive: true }));
    const { hostNotes } = await openSharedState({ kind: 'directory', root });
    /** Checks the clocks while those of server and store are so far ahead of this one; returns note and refusal. */
    const check = async (serverMs: number, storeMs: number | null) => {
      const lastPollMs = serverAhead(serverMs);
      const describeTaskQueue = async () => {
        const polledMs = await lastPollMs();
        return {
          pollers:
            polledMs === null ? [] : [{ identity: workerIdentity, lastAccessTime: { seconds: polledMs / 1000 } }],
        };
      };
      const client = { options: { namespace: 'any' }, connection: { workflowService: { describeTaskQueue } } };
      const state = { hosts: { skewMs: async () => storeMs }, hostNotes };
      const warned: unknown[] = [];
      const log = { warn: (text: unknown) => void warned.push(text) };
      const refusal = await checkClocks({ client, host: 'one', state, log }, t.signal);
      const note = (await hostNotes.list('one')).clock?.text ?? null;
      assert.deepEqual(warned, note === null ? [] : [note]);
      return { note, refusal };
    };

    const minor = await check(3 * minutes, null);
    assert.match(minor.note ?? '', /^its clock is 1[4-8]\d s behind that of the Temporal server; let NTP set both$/);
    assert.equal(minor.refusal, null);
    const major = await check(0, -6 * minutes);
    assert.equal(major.note, 'its clock is 360 s ahead of that of the store; let NTP set both');
    assert.equal(major.refusal, `this host is refused: ${major.note}`);
    assert.match(
      (await check(6 * minutes, 0)).refusal ?? '',
      /^this host is refused: its clock is 3[2-6]\d s behind that/,
    );
    assert.deepEqual(await check(0, 0), { note: null, refusal: null });
  });
});
