import type { TurnRecord } from '../branches/turn-record.ts';
import type { GatewayError } from '../gateway-error.ts';
import type { RunningTurn } from '../turns/turn.ts';
import type { Waits } from './waits.ts';

type Running = RunningTurn<TurnRecord>;

/** The turns of a session that have begun and not ended, by the keys of their requests. */
export interface RunningTurns {
  readonly count: number;
  /** Returns the turn that a further request with this key joins; undefined if the request needs a turn of its own. */
  find(key: string): Running | undefined;
  /** Adds a turn, which leaves by itself when it ends. */
  add(turn: Running): void;
  /** Resolves when the turns that run now have ended. */
  ended(): Promise<void>;
  /** Cancels all turns, and resolves when they have ended. */
  cancel(reason: GatewayError): Promise<void>;
}

export function createRunningTurns(waits: Pick<Waits, 'begin'>): RunningTurns {
  const byKey = new Map<string, Running>();

  async function ended(): Promise<void> {
    await Promise.allSettled([...byKey.values()].map(({ result }) => result));
  }

  return {
    get count() {
      return byKey.size;
    },
    find(key) {
      const turn = byKey.get(key);
      return turn?.abandoned ? undefined : turn;
    },
    add(turn) {
      byKey.set(turn.key, turn);
      const wait = waits.begin();
      turn.watchHeld(wait.hold);
      const leave = (): void => {
        wait.end();
        // Another turn may have taken the place of an abandoned one.
        if (byKey.get(turn.key) === turn) byKey.delete(turn.key);
      };
      turn.result.then(leave, leave);
    },
    ended,
    cancel(reason) {
      for (const turn of byKey.values()) turn.cancel(reason);
      return ended();
    },
  };
}
