import type { FinishReason, SampleEvent } from '../core.ts';
import { createRandom, type Random } from '../model/random.ts';
import type { CheckedRequest } from './requests.ts';

/** One request on its way: its tokens so far, its random numbers, and where its events go. */
export interface Sequence {
  readonly request: CheckedRequest;
  readonly tokens: Int32Array;
  length: number;
  readonly random: Random;
  /** undefined once they were sent, or where nobody asked */
  promptLogprobs: (number | null)[] | undefined;
  readonly emit: (event: SampleEvent) => void;
}

export function createSequence(request: CheckedRequest, emit: (event: SampleEvent) => void): Sequence {
  const promptLength = request.tokenIds.length;
  const tokens = new Int32Array(promptLength + request.maxTokens);
  tokens.set(request.tokenIds);
  // the first token has no logprob: where it is the only one, there is nothing to compute
  if (request.promptLogprobs && promptLength === 1) emit({ type: 'prompt', logprobs: [null] });
  const promptLogprobs = request.promptLogprobs && promptLength > 1 ? [null] : undefined;
  return { request, tokens, length: promptLength, random: createRandom(request.seed), promptLogprobs, emit };
}

/** Takes the logprobs that rows `first`.. of the prompt give to the tokens after them; sends them when complete. */
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

/** Takes a sampled token; says why the sequence ends with it, if it does. */
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
