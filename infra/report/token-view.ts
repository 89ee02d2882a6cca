import { pathTo } from '../../workflows/algorithms/turns.ts';
import type { Segment, Trace } from '../../workflows/contracts/trace.ts';
import type { TokenFacts, TokenView } from './data.ts';

/** What people read in place of a token id. */
export type TokenName = (id: number) => string;

/** A report holds several rollouts, and a trace may have hundreds of segments of ten thousands of tokens. */
const maxSegments = 16;
const maxTokens = 4_000;
/** Of a long prompt, what people look for is at its ends. */
const shownOfPrompt = { head: 400, tail: 200 } as const;

/** The first segments of a trace as people read them: what was given, sampled, and sampled but not trained. */
export function tokenViews(trace: Trace, nameOf: TokenName): { views: TokenView[]; segmentsLeft: number } {
  const shown = trace.segments.slice(0, maxSegments);
  const views = shown.map((segment, index): TokenView => {
    const shared = Math.max(0, ...shown.slice(0, index).map((earlier) => commonLength(earlier.tokens, segment.tokens)));
    const { tokens, left } = tokensFrom(shared, segment, sampledLogprobs(trace, segment, index), nameOf);
    const trained = segment.mask.filter((one) => one === 1).length;
    return { segment: index, kind: segment.kind, length: segment.tokens.length, trained, shared, tokens, left };
  });
  return { views, segmentsLeft: trace.segments.length - shown.length };
}

function tokensFrom(from: number, segment: Segment, sampled: ReadonlyMap<number, number>, nameOf: TokenName) {
  const tokens: TokenFacts[] = [];
  let at = from;
  const show = (until: number): void => {
    for (; at < until; at += 1) tokens.push(factsOf(at, segment, sampled, nameOf));
  };
  while (at < segment.tokens.length && tokens.length < maxTokens) {
    const end = endOfGiven(at, segment, sampled);
    const skipped = end - at - shownOfPrompt.head - shownOfPrompt.tail;
    if (skipped > 0) {
      show(at + shownOfPrompt.head);
      tokens.push({ text: `… ${skipped} tokens …`, is: 'skipped', logprob: null });
      at += skipped;
    }
    show(Math.max(end, at + 1));
  }
  return { tokens, left: segment.tokens.length - at };
}

/** The first position from `at` that was sampled. */
function endOfGiven(at: number, { tokens }: Segment, sampled: ReadonlyMap<number, number>): number {
  let end = at;
  while (end < tokens.length && !sampled.has(end)) end += 1;
  return end;
}

function factsOf(
  at: number,
  { tokens, mask }: Segment,
  sampled: ReadonlyMap<number, number>,
  nameOf: TokenName,
): TokenFacts {
  const text = nameOf(tokens[at] ?? -1);
  const logprob = sampled.get(at) ?? null;
  if (logprob === null) return { text, is: 'given', logprob };
  return { text, is: mask[at] === 1 ? 'sampled' : 'masked', logprob };
}

/** By position, also of turns that the segment does not train: those of the branch that it was made of. */
function sampledLogprobs({ turns, branches }: Trace, segment: Segment, index: number): Map<number, number> {
  const found = new Map<number, number>();
  for (const [at, one] of segment.mask.entries()) if (one === 1) found.set(at, segment.logprobs[at] ?? 0);
  const leaf = branches?.find((branch) => branch.segment === index)?.lastTurn;
  for (const turn of pathTo(turns, turns[leaf ?? -1])) {
    for (const [offset, logprob] of turn.logprobs.entries()) found.set(turn.promptLength + offset, logprob);
  }
  return found;
}

function commonLength(left: readonly number[], right: readonly number[]): number {
  let length = 0;
  while (length < Math.min(left.length, right.length) && left[length] === right[length]) length += 1;
  return length;
}
