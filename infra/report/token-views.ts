import { pathTo } from '../../workflows/algorithms/turns.ts';
import type { Segment, Trace } from '../../workflows/contracts/trace.ts';
import type { TokenFacts, TokenView } from './report-data.ts';

/** Returns the text that is shown for a token id. */
export type TokenName = (id: number) => string;

/** Limits of what is shown: a trace may have hundreds of segments with tens of thousands of tokens. */
const maxSegments = 16;
const maxTokens = 4_000;
/** The tokens that are shown of a long prompt, whose ends are most informative. */
const shownOfPrompt = { head: 400, tail: 200 } as const;

/** Makes readable views of the first segments of a trace, which mark tokens as given, sampled, or sampled but not trained. */
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

/** The first sampled position from `at` on. */
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

/** The logprobs of sampled tokens by position, including those of turns in the segment's branch that are not trained. */
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
