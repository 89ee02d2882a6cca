import { createRandom, type Random } from '../model/random.ts';
import type { FinishReason, SampleEvent } from '../sampler-core.ts';
import type { CheckedRequest } from './requests.ts';

/** An unfinished request: its tokens so far, its random numbers, and the receiver of its events. */
export interface Sequence {
  readonly request: CheckedRequest;
  readonly tokens: Int32Array;
  length: number;
  readonly random: Random;
  /** Undefined once sent, or if not requested. */
  promptLogprobs: (number | null)[] | undefined;
  readonly emit: (event: SampleEvent) => void;
}

export function createSequence(request: CheckedRequest, emit: (event: SampleEvent) => void): Sequence {
  const promptLength = request.tokenIds.length;
  const tokens = new Int32Array(promptLength + request.maxTokens);
  tokens.set(request.tokenIds);
  // The first token has no logprob, so there is nothing to compute if it is the only one.
  if (request.promptLogprobs && promptLength === 1) emit({ type: 'prompt', logprobs: [null] });
  const promptLogprobs = request.promptLogprobs && promptLength > 1 ? [null] : undefined;
  return { request, tokens, length: promptLength, random: createRandom(request.seed), promptLogprobs, emit };
}

/** Records the logprobs that the prompt's rows from `first` on give to the tokens after them; sends them when complete. */
export function notePromptLogprobs(
  sequence: Sequence,
  first: number,
  rows: number,
  logprob: (row: number, token: number) => number,
): void {
  const { promptLogprobs, request } = sequence;
  if (promptLogprobs === undefined) return;
  for (let i = 0; i < rows; i++) promptLogprobs[first + i + 1] = logprob(i, request.tokenIds[first + i + 1] as number);
  if (first + rows + 1 < request.tokenIds.length) return;
  sequence.emit({ type: 'prompt', logprobs: promptLogprobs });
  sequence.promptLogprobs = undefined;
}

/** Appends a sampled token; returns the reason if the sequence ends with it. */
export function appendToken(
  sequence: Sequence,
  tokenId: number,
  logprob: number,
  version: string,
): FinishReason | undefined {
  const { request, tokens } = sequence;
  tokens[sequence.length] = tokenId;
  sequence.length += 1;
  sequence.emit({ type: 'token', tokenId, logprob, version });
  if (request.stopTokenIds.has(tokenId)) return 'stop';
  return sequence.length === tokens.length ? 'length' : undefined;
}
