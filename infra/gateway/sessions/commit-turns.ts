import type { TurnRecord } from '../branches/turn-record.ts';
import type { TurnContext } from '../turns/model-backend.ts';
import type { Fence } from './fence.ts';
import type { Journal } from './journal.ts';

export interface CommitDeps {
  readonly journal: Pick<Journal, 'append'>;
  readonly fence: Pick<Fence, 'untilValid'>;
  /** Returns the turns that are committed. */
  readonly turns: () => readonly TurnRecord[];
  readonly onTurn: (turn: TurnRecord) => void;
}

/** Creates the function that commits the turns of a session: one at a time, since a turn's index is its position in the journal. */
export function createCommit({ journal, fence, turns, onTurn }: CommitDeps): TurnContext['commit'] {
  let last: Promise<void> = Promise.resolve(); // without the turn, whose long prompt would stay in memory

  const write: TurnContext['commit'] = async (make, add, signal) => {
    signal.throwIfAborted();
    await fence.untilValid(signal);
    const turn = make(turns().length);
    await journal.append({ kind: 'turn', turn });
    add(turn);
    onTurn(turn);
    // The host may have been lost while it wrote: then the turn may be missing in the journal that another one has adopted.
    await fence.untilValid(signal);
    return turn;
  };

  return (make, add, signal) => {
    const committed = last.then(() => write(make, add, signal));
    last = Promise.allSettled([committed]).then(() => {});
    return committed;
  };
}
