import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JournalRecord } from '../../../../infra/gateway/sessions/journal.ts';
import { createWaits, type TurnWait } from '../../../../infra/gateway/sessions/waits.ts';

/** Waits by a clock that the test sets, with what they write. */
function waitsAt(clock: { ms: number }) {
  const written: JournalRecord[] = [];
  const append = async (record: JournalRecord): Promise<void> => void written.push(record);
  return { waits: createWaits({ append }, () => clock.ms), written };
}

interface Spell {
  readonly idle: number;
  readonly held: number;
  readonly sampled: number;
}
const spell = fc.record({ idle: fc.nat(20), held: fc.nat(20), sampled: fc.nat(20) });
/** The turns of one client, which asks for one after the other, is idle between them, and whose turns wait several times. */
const client = fc.array(spell, { maxLength: 6 });

/** The state of a client's turn in each millisecond. */
const statesOf = (spells: readonly Spell[]): string[] =>
  spells.flatMap(({ idle, held, sampled }) => [
    ...Array(idle).fill('idle'),
    ...Array(held).fill('held'),
    ...Array(sampled).fill('sampled'),
  ]);

describe('the waits of a session', () => {
  it('are the time in which turns run and none is sampled, whatever their order', () => {
    fc.assert(
      fc.property(fc.array(client, { maxLength: 5 }), (clients) => {
        const states = clients.map(statesOf);
        const length = Math.max(0, ...states.map((one) => one.length)) + 1;
        const clock = { ms: 0 };
        const { waits } = waitsAt(clock);
        const turns: (TurnWait | null)[] = clients.map(() => null);
        let expected = 0;
        for (; clock.ms < length; clock.ms += 1) {
          const now = states.map((one) => one[clock.ms] ?? 'idle');
          for (const [index, state] of now.entries()) {
            if (state !== 'idle') turns[index] ??= waits.begin();
            if (state === 'sampled') turns[index]?.hold(false);
            // Its last token comes at the end of the millisecond.
            if (states[index]?.[clock.ms - 1] === 'sampled') turns[index]?.hold(false);
          }
          for (const [index, state] of now.entries()) {
            if (state === 'held') turns[index]?.hold(true);
            if (state === 'idle') turns[index]?.end();
            if (state === 'idle') turns[index] = null;
          }
          assert.equal(waits.ms, expected);
          if (now.includes('held') && !now.includes('sampled')) expected += 1;
        }
      }),
    );
  });

  it('begin at the last token, since a pause is noticed late', () => {
    const clock = { ms: 0 };
    const { waits } = waitsAt(clock);
    const turn = waits.begin();
    clock.ms = 10;
    turn.hold(false);
    clock.ms = 25;
    turn.hold(true);
    assert.equal(waits.ms, 15);
    clock.ms = 30;
    turn.hold(true);
    assert.equal(waits.ms, 20);
    turn.end();
    turn.hold(true);
    clock.ms = 99;
    assert.equal(waits.ms, 20);
  });

  it('continue from what was written, which is written again only if it has changed', async () => {
    const clock = { ms: 5 };
    const { waits, written } = waitsAt(clock);
    waits.restore(40);
    await waits.write();
    const turn = waits.begin();
    turn.hold(true);
    clock.ms = 7;
    await waits.write();
    turn.end();
    await waits.write();
    assert.deepEqual(written, [{ kind: 'waited', ms: 42 }]);
  });
});
