import type { SampleEvent, SampleRequest, SamplerCore } from '../../core.ts';
import type { Piece, Span } from './shapes.ts';

/** A generation as pieces: one per token, the finish in one of its own. Leaving it early aborts it. */
export async function* piecesOf(
  sampler: Pick<SamplerCore, 'generate'>,
  request: SampleRequest,
  signal: AbortSignal,
): AsyncGenerator<Piece> {
  const spans: Span[] = [];
  let count = 0;
  let last: number | null = null;
  let prompt: readonly (number | null)[] | null = null;
  for await (const event of sampler.generate(request, signal)) {
    if (event.type === 'prompt') {
      prompt = event.logprobs;
    } else if (event.type === 'token') {
      extend(spans, event.version, count);
      count += 1;
      last = event.tokenId;
      yield { tokenIds: [event.tokenId], logprobs: [event.logprob], finish: null, prompt: null };
    } else {
      const stopReason = event.reason === 'stop' ? last : null;
      yield { tokenIds: [], logprobs: [], finish: { reason: event.reason, stopReason, spans }, prompt };
    }
  }
}

/** Joins what is there at once: tokens come from their thread by the handful, and a chunk costs more than a token. */
export async function* joined(pieces: AsyncGenerator<Piece>): AsyncGenerator<Piece> {
  try {
    let upcoming = pieces.next();
    for (let first = await upcoming; first.done !== true; first = await upcoming) {
      let piece = first.value;
      upcoming = pieces.next();
      for (let more = await soon(upcoming); more?.done === false; more = await soon(upcoming)) {
        piece = join(piece, more.value);
        upcoming = pieces.next();
      }
      yield piece;
    }
  } finally {
    await pieces.return(undefined);
  }
}

/** The result if it needs no further event; null if it does. A failure shows when the piece is awaited. */
function soon<T>(result: Promise<T>): Promise<T | null> {
  const { promise: later, resolve } = Promise.withResolvers<null>();
  setImmediate(() => resolve(null));
  return Promise.race([result.catch(() => null), later]);
}

function join(a: Piece, b: Piece): Piece {
  return {
    tokenIds: [...a.tokenIds, ...b.tokenIds],
    logprobs: [...a.logprobs, ...b.logprobs],
    finish: b.finish,
    prompt: b.prompt ?? a.prompt,
  };
}

/** All pieces of a generation as one. */
export async function wholeOf(pieces: AsyncIterable<Piece>): Promise<Piece> {
  const tokenIds: number[] = [];
  const logprobs: number[] = [];
  for await (const piece of pieces) {
    tokenIds.push(...piece.tokenIds);
    logprobs.push(...piece.logprobs);
    if (piece.finish !== null) return { tokenIds, logprobs, finish: piece.finish, prompt: piece.prompt };
  }
  throw new Error('expected the generation to finish, its events ended before');
}

function extend(spans: Span[], version: Extract<SampleEvent, { type: 'token' }>['version'], position: number): void {
  const open = spans.at(-1);
  if (open?.version === version) spans[spans.length - 1] = { ...open, end: position + 1 };
  else spans.push({ version, start: position, end: position + 1 });
}
