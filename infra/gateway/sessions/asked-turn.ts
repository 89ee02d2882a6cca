import type { TurnRecord } from '../branches/turn-record.ts';
import type { ReplyingTurn } from '../turns/turn.ts';
import type { RequestOrigin, Sample, Samples } from './samples.ts';

/** The turn of a request. */
export interface AskedTurn {
  readonly turn: ReplyingTurn<TurnRecord>;
  /** Registers the client of the request. The returned function says that it left, and whether it was sent the whole response. */
  follow(): (isWhole: boolean) => void;
}

/** Creates the turn of a request, whose delivery the samples note. A response to a turn that has failed delivers nothing. */
export function createAskedTurn(
  samples: Pick<Samples, 'send'>,
  turn: ReplyingTurn<TurnRecord>,
  { sample, origin }: { readonly sample: Sample; readonly origin: RequestOrigin },
): AskedTurn {
  return {
    turn,
    follow() {
      let isAnswered = false;
      const answered = (): void => {
        isAnswered = true;
      };
      turn.result.then(answered, () => {});
      const leave = turn.follow();
      const sent = samples.send(sample, origin);
      return (isWhole) => {
        sent(isWhole && isAnswered);
        leave();
      };
    },
  };
}
