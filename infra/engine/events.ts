import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import type { VersionSpan } from '../../workflows/contracts/trace.ts';
import { isRecord } from '../is-record.ts';
import { checkedLogprobs, finishReasonOf, invalid, unavailable } from './checks.ts';
import type { GenerateEvent } from './engine.ts';

/** One chunk of a streamed reply, before any check. */
export interface Chunk {
  readonly ids: readonly number[] | null | undefined;
  readonly logprobs: readonly (number | null | undefined)[] | null | undefined;
  /** The reason why the generation ended, in the engine's own word; absent before the last chunk. */
  readonly finish: string | null | undefined;
}

/**
 * Turns chunks into events. Checks each of them, fails when more tokens arrive than were asked for, and fails when the
 * stream ends without a finish.
 */
export async function* checkedEvents<C extends Chunk>(
  chunks: AsyncIterable<C>,
  { maxTokens, where }: { readonly maxTokens: number; readonly where: string },
  versionsOf: (last: C, tokens: number) => Promise<readonly VersionSpan[]>,
): AsyncGenerator<GenerateEvent> {
  let tokens = 0;
  for await (const chunk of chunks) {
    const { finish } = chunk;
    const tokenIds = checkedIds(chunk, where);
    const logprobs = checkedLogprobs(tokenIds, tokenIds.length === 0 ? [] : chunk.logprobs, where);
    tokens += tokenIds.length;
    if (tokens > maxTokens) throw invalid(`${where}: expected at most ${maxTokens} tokens, got more`);
    if (finish === null || finish === undefined) {
      if (tokenIds.length > 0) yield { tokenIds, logprobs };
      continue;
    }
    const finishReason = finishReasonOf(finish, where);
    yield { tokenIds, logprobs, finishReason, versions: tokens === 0 ? [] : await versionsOf(chunk, tokens) };
    return;
  }
  throw unavailable(`${where}: expected a finish_reason, got the end of the stream after ${tokens} tokens; try again`);
}

/** Returns the ids of a chunk. Fails for a server that sends text and logprobs alone, which would look like an empty turn. */
function checkedIds({ ids, logprobs }: Chunk, where: string): readonly number[] {
  if (ids === null || ids === undefined) {
    if (logprobs == null || logprobs.length === 0) return [];
    throw invalid(
      `${where}: expected the ids of ${logprobs.length} tokens, got only their logprobs; check that the engine returns token ids`,
    );
  }
  return ids;
}

/** Yields the payloads of a server-sent event stream as JSON, in order. `[DONE]` ends the stream. */
export async function* jsonEvents(bytes: AsyncIterable<Buffer>, where: string): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  const parsed: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => parsed.push(data.trim()) });
  const texts = async function* (): AsyncGenerator<string> {
    let last = '';
    for await (const part of bytes) {
      last = decoder.decode(part, { stream: true });
      yield last;
    }
    // A server may end the stream without the blank line that closes its last event. A line that was cut stays unread.
    if (last.endsWith('\n')) yield '\n';
  };
  for await (const text of texts()) {
    parser.feed(text);
    for (const data of parsed.splice(0)) {
      if (data === '[DONE]') return;
      yield parseJson(data, where);
    }
  }
}

const streamError = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });

/** Returns the engine's message if the payload reports an error in place of a chunk, else null. */
export function failureIn(data: unknown): string | null {
  // Every chunk comes through here, and a schema that does not fit costs as much as all else that is done with one.
  if (!isRecord(data) || data.error === undefined) return null;
  const parsed = streamError.safeParse(data);
  if (!parsed.success) return null;
  const { error } = parsed.data;
  return typeof error === 'string' ? error : error.message;
}

export function readAs<T>(schema: z.ZodType<T>, data: unknown, where: string): T {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw invalid(`${where}: unreadable chunk: ${parsed.error.message}`, { cause: parsed.error });
}

function parseJson(data: string, where: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw invalid(`${where}: expected JSON in the stream, got "${data.slice(0, 200)}"`, { cause });
  }
}
