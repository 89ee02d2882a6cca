import { sampledTokensOf } from '../../../workflows/algorithms/turns.ts';
import type { CutRequests } from '../../../workflows/contracts/trace.ts';
import { type TurnRecord, turnKeyOf } from '../branches/turn-record.ts';
import { limits } from '../limits.ts';
import type { Journal } from './journal.ts';

/**
 * Turns whose client left before they had ended, with the tokens sampled until then. Most clients send the request again, whose turn
 * takes the place of the cut one. What remains is what the end of the agent cut.
 */
export interface Cuts {
  /** The cut turns with which the session ended, as the turns that follow the others. */
  readonly last: readonly TurnRecord[];
  /** All others. */
  readonly replaced: CutRequests;
  /** Those beyond the number that is free, which count towards the limits of the session. */
  readonly excess: CutRequests;
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
  /** Called for a cut turn that could not be written: a gateway that is killed forgets it. */
  readonly onUnwritten: (error: unknown) => void;
}

export function createCuts({ journal, turns, isAnswered, onUnwritten }: CutsDeps): Cuts {
  const cuts = new Map<string, { readonly turn: TurnRecord; readonly turnsBefore: number }>();
  const all = { requests: 0, tokens: 0 };
  const excess = { requests: 0, tokens: 0 };
  let writing: Promise<unknown> = Promise.resolve();

  function restore(turn: TurnRecord): void {
    cuts.set(turnKeyOf(turn.requestKey, turn.sample ?? 1), { turn, turnsBefore: turns().length });
    addTo(all, turn);
    if (all.requests > limits.freeCuts) addTo(excess, turn);
  }

  function last(): readonly TurnRecord[] {
    const unanswered = [...cuts].filter(
      ([key, { turn, turnsBefore }]) =>
        !isAnswered(key) &&
        !turns()
          .slice(turnsBefore)
          .some(({ startedAt }) => startedAt >= turn.endedAt),
    );
    return unanswered.map(([, { turn }], at) => ({ ...turn, index: turns().length + at }));
  }

  return {
    get last() {
      return last();
    },
    get replaced() {
      const kept = last();
      const keptTokens = kept.reduce((sum, turn) => sum + sampledTokensOf(turn), 0);
      return { requests: all.requests - kept.length, tokens: all.tokens - keptTokens };
    },
    excess,
    restore,
    add(turn) {
      restore(turn);
      // A cut turn that can't be written counts from memory.
      const written = journal.append({ kind: 'cut', turn }).catch(onUnwritten);
      writing = Promise.all([writing, written]);
    },
    async written() {
      await writing;
    },
  };
}

function addTo(sum: { requests: number; tokens: number }, turn: TurnRecord): void {
  sum.requests += 1;
  sum.tokens += sampledTokensOf(turn);
}
