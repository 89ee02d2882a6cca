import type { TurnRecord } from '../branches/turn-record.ts';
import type { ReplyingTurn } from '../turns/turn.ts';
import type { RequestOrigin, Sample, Samples } from './samples.ts';

/** The turn of a request. */
export interface AskedTurn {
  readonly turn: ReplyingTurn<TurnRecord>;
  /** Says that the client of the request left, and whether it was sent the whole response. */
  leave(isWhole: boolean): void;
}

/**
 * Creates the turn of a request, whose delivery the samples note. A response to a turn that has failed delivers nothing. The client
 * counts from now on: an equal request that comes before the response begins would otherwise take the reply for a lost one.
 */
export function createAskedTurn(
  samples: Pick<Samples, 'send'>,
  turn: ReplyingTurn<TurnRecord>,
  { sample, origin }: { readonly sample: Sample; readonly origin: RequestOrigin },
): AskedTurn {
  let isAnswered = false;
  const answered = (): void => {
    isAnswered = true;
  };
  turn.result.then(answered, () => {});
  const unfollow = turn.follow();
  const sent = samples.send(sample, origin);
  return {
    turn,
    leave(isWhole) {
      sent(isWhole && isAnswered);
      unfollow();
    },
  };
}
