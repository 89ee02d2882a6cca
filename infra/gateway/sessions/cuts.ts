import { type TurnRecord, turnKeyOf } from '../branches/turn-record.ts';
import type { Journal } from './journal.ts';

/**
 * Turns whose client left before they had ended, with the tokens sampled until then. Most clients send the request again, whose turn
 * takes the place of the cut one. What remains is what the end of the agent cut.
 */
export interface Cuts {
  /** The cut turns with which the session ended, as the turns that follow the others. */
  readonly last: readonly TurnRecord[];
  /** Adds a cut turn that was read from the journal. */
  restore(turn: TurnRecord): void;
  /** Records a cut turn, whose index is open. */
  add(turn: TurnRecord): void;
  /** Resolves when all cut turns are written. */
  written(): Promise<void>;
}

export interface CutsDeps {
  readonly journal: Pick<Journal, 'append'>;
  readonly turns: () => readonly TurnRecord[];
  /** Whether a turn has answered the request of this key. */
  readonly isAnswered: (key: string) => boolean;
}

export function createCuts({ journal, turns, isAnswered }: CutsDeps): Cuts {
  const cuts = new Map<string, { readonly turn: TurnRecord; readonly turnsBefore: number }>();
  let writing: Promise<unknown> = Promise.resolve();

  function restore(turn: TurnRecord): void {
    cuts.set(turnKeyOf(turn.requestKey, turn.sample ?? 1), { turn, turnsBefore: turns().length });
  }

  return {
    get last() {
      const unanswered = [...cuts].filter(
        ([key, { turn, turnsBefore }]) =>
          !isAnswered(key) &&
          !turns()
            .slice(turnsBefore)
            .some(({ startedAt }) => startedAt >= turn.endedAt),
      );
      return unanswered.map(([, { turn }], at) => ({ ...turn, index: turns().length + at }));
    },
    restore,
    add(turn) {
      restore(turn);
      // A cut turn that can't be written counts from memory.
      const written = journal.append({ kind: 'cut', turn }).catch(() => {});
      writing = Promise.all([writing, written]);
    },
    async written() {
      await writing;
    },
  };
}
