import type { Journal } from './journal.ts';

/** The waits of one running turn. */
export interface TurnWait {
  /** Notes whether the turn waits for an engine; called with false whenever the engine has sent tokens for it. */
  hold(isHeld: boolean): void;
  end(): void;
}

/**
 * The time in which a session waited for an engine: at least one of its turns ran, and the engine worked at none of them. An agent
 * that asks for many turns at once waits only while all of them wait, and one that asks for none never does.
 */
export interface Waits {
  /** The milliseconds so far. */
  readonly ms: number;
  /** Begins a turn, which counts as being sampled until it is held. */
  begin(): TurnWait;
  /** Continues from what the journal says. */
  restore(ms: number): void;
  /** Writes the time to the journal, if it has changed. A gateway that is killed forgets what has come since. */
  write(): Promise<void>;
}

/** Creates the waits of a session. `nowMs` is a clock that no change of the wall clock moves. */
export function createWaits(journal: Pick<Journal, 'append'>, nowMs: () => number = () => performance.now()): Waits {
  const turns = new Set<{ held: boolean }>();
  let wholeMs = 0;
  let writtenMs = 0;
  /** The last time at which a turn was known to be sampled, or none ran. */
  let sampledAtMs = nowMs();
  let waits = false;

  function update(): void {
    const now = nowMs();
    if (waits) wholeMs += now - sampledAtMs;
    const held = turns.size > 0 && [...turns].every((turn) => turn.held);
    // A pause of an engine is noticed late: the wait began when the last token came.
    if (!held || waits) sampledAtMs = now;
    waits = held;
  }

  const total = (): number => Math.round(wholeMs + (waits ? nowMs() - sampledAtMs : 0));

  return {
    get ms() {
      return total();
    },
    begin() {
      update();
      const turn = { held: false };
      turns.add(turn);
      update();
      return {
        hold(isHeld) {
          if (!turns.has(turn) || (isHeld && turn.held)) return;
          turn.held = isHeld;
          update();
        },
        end() {
          update();
          turns.delete(turn);
          update();
        },
      };
    },
    restore(ms) {
      wholeMs = writtenMs = ms;
    },
    async write() {
      const ms = total();
      if (ms === writtenMs) return;
      await journal.append({ kind: 'waited', ms });
      writtenMs = ms;
    },
  };
}
