import type { TurnRecord } from '../branches/turn-record.ts';
import { limits } from '../limits.ts';
import { refusalOf } from '../refusal.ts';
import type { RunningTurn } from '../turns/turn.ts';
import type { Flag, Journal } from './journal.ts';

/** What ended a request, when, and how many turns there were by then. */
export interface Flagged {
  readonly flag: Flag;
  readonly key: string;
  readonly at: number;
  readonly turns: number;
}

/** How a request stood when it came to nothing. */
export type Ending = Pick<RunningTurn<unknown>, 'abandoned' | 'held'>;

/** What ended requests of a session, by the key of the request. */
export interface Flags {
  /** Of the journal. */
  restore(flagged: Omit<Flagged, 'turns'>): void;
  of(flag: Flag): readonly Flagged[];
  /** Did a turn begin after it? One that was running at the time says nothing. */
  wentOn(flagged: Flagged): boolean;
  /** However often an agent knocks, a request is flagged once until it goes on; and there is room for few limits that were reached. */
  add(flag: Flag, key: string): Promise<void>;
  /** Tries again what could not be written. */
  write(): Promise<void>;
  readonly unwritten: boolean;
}

/**
 * A full disk can't take the flag that tells of it: that one counts from memory, and is written with the next flag or when the
 * session is closed. If the gateway dies before, it is lost, and its rollout scored by what the agent left, unless its
 * request is sent again and fails again.
 */
export function createFlags(journal: Journal, turns: () => readonly Pick<TurnRecord, 'startedAt'>[]): Flags {
  const flags = new Map<string, Flagged>();
  const waiting = new Map<string, Flagged>();

  function note({ flag, key, at }: Omit<Flagged, 'turns'>): Flagged {
    const flagged = { flag, key, at, turns: turns().length };
    flags.set(key, flagged);
    return flagged;
  }

  const wentOn = (flagged: Flagged): boolean =>
    turns()
      .slice(flagged.turns)
      .some(({ startedAt }) => startedAt >= flagged.at);

  async function write(): Promise<void> {
    for (const [name, { flag, key, at }] of [...waiting]) {
      await journal.append({ kind: 'flag', flag, key, at });
      waiting.delete(name);
    }
  }

  return {
    restore: (flagged) => void note(flagged),
    of: (flag) => [...flags.values()].filter((one) => one.flag === flag),
    wentOn,
    async add(flag, key) {
      const known = flags.get(key);
      if (known?.flag === flag && !wentOn(known)) return;
      if (known === undefined && flags.size >= limits.flags) return;
      waiting.set(key, note({ flag, key, at: Date.now() }));
      await write();
    },
    write,
    get unwritten() {
      return waiting.size > 0;
    },
  };
}

/**
 * The flag of a turn that came to nothing by no doing of the agent's. One that was cancelled, by the end of the session or
 * because its client left, has one when the engine was away for it; it does not count where the request is answered after
 * all. A turn that a gateway cuts because it restarts is asked for again.
 */
export function failureFlag({ abandoned, held }: Ending, error: unknown): Flag | null {
  const { kind } = refusalOf(error);
  if (abandoned) return held && kind !== 'gateway-closing' ? 'engine-failure' : null;
  if (kind === 'engine-unavailable' || kind === 'engine-invalid') return 'engine-failure';
  return kind === 'journal-unavailable' || kind === 'internal' ? 'gateway-failure' : null;
}
