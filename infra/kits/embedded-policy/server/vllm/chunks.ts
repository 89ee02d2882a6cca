import type { SampleEvent, SampleRequest, SamplerCore } from '../../sampler-core.ts';
import type { Chunk, Span } from './reply-shapes.ts';

/** Yields a generation as chunks: one per token, and one for the finish. Returning early aborts it. */
export async function* chunksOf(
  sampler: Pick<SamplerCore, 'generate'>,
  request: SampleRequest,
  signal: AbortSignal,
): AsyncGenerator<Chunk> {
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

/**
 * Joins chunks that are available at once: the thread sends several tokens in one message, and a chunk costs more than a
 * token.
 */
export async function* joined(chunks: AsyncGenerator<Chunk>): AsyncGenerator<Chunk> {
  try {
    let upcoming = chunks.next();
    for (let first = await upcoming; first.done !== true; first = await upcoming) {
      let chunk = first.value;
      upcoming = chunks.next();
      for (let more = await ifReady(upcoming); more?.done === false; more = await ifReady(upcoming)) {
        chunk = join(chunk, more.value);
        upcoming = chunks.next();
      }
      yield chunk;
    }
  } finally {
    await chunks.return(undefined);
  }
}

/**
 * Returns the result if it is available in this turn of the event loop, else null. An error is thrown where the chunk is
 * awaited.
 */
function ifReady<T>(result: Promise<T>): Promise<T | null> {
  const { promise: later, resolve } = Promise.withResolvers<null>();
  setImmediate(() => resolve(null));
  return Promise.race([result.catch(() => null), later]);
}

function join(a: Chunk, b: Chunk): Chunk {
  return {
    tokenIds: [...a.tokenIds, ...b.tokenIds],
    logprobs: [...a.logprobs, ...b.logprobs],
    finish: b.finish,
    prompt: b.prompt ?? a.prompt,
  };
}

/** Collects all chunks of a generation into one. */
export async function collectChunks(chunks: AsyncIterable<Chunk>): Promise<Chunk> {
  const tokenIds: number[] = [];
  const logprobs: number[] = [];
  for await (const chunk of chunks) {
    tokenIds.push(...chunk.tokenIds);
    logprobs.push(...chunk.logprobs);
    if (chunk.finish !== null) return { tokenIds, logprobs, finish: chunk.finish, prompt: chunk.prompt };
  }
  throw new Error('the events of the generation ended before its finish');
}

function extend(spans: Span[], version: Extract<SampleEvent, { type: 'token' }>['version'], position: number): void {
  const open = spans.at(-1);
  if (open?.version === version) spans[spans.length - 1] = { ...open, end: position + 1 };
  else spans.push({ version, start: position, end: position + 1 });
}
