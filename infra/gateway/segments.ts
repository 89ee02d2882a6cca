import type { Segment } from '../../workflows/contracts/trace.ts';
import { checkTurns } from './token-check.ts';
import type { TurnRecord } from './turn-record.ts';

type MaskedTurn = Segment['maskedTurns'][number];

/**
 * One segment per leaf of the tree of turns. Each sampled token is trained in the first segment that holds it and is
 * context in later ones. A turn that fails the check is masked alone; a branch of masked turns alone is no segment. A branch
 * whose tools and system message are not the first turn's is a side one.
 */
export function buildSegments(turns: readonly TurnRecord[]): Segment[] {
  const { masked } = checkTurns(turns);
  const parents = new Set(turns.map((turn) => turn.parent));
  const trained = new Set<number>();
  const segments: Segment[] = [];
  for (const leaf of turns) {
    if (parents.has(leaf.index)) continue;
    const segment = buildSegment(segments.length, pathTo(turns, leaf), turns[0], masked, trained);
    if (segment.mask.includes(1)) segments.push(segment);
  }
  return segments;
}

function buildSegment(
  index: number,
  path: readonly TurnRecord[],
  first: TurnRecord | undefined,
  masked: ReadonlyMap<number, string>,
  trained: Set<number>,
): Segment {
  const tokens: number[] = [];
  const mask: (0 | 1)[] = [];
  const logprobs: number[] = [];
  const versions: number[] = [];
  const reasons: MaskedTurn[] = [];
  for (const turn of path) {
    const reason = masked.get(turn.index);
    if (reason !== undefined) reasons.push({ turn: turn.index, reason });
    const trains = reason === undefined && !trained.has(turn.index);
    trained.add(turn.index);
    const sampledFrom = tokens.length + turn.promptIds.length;
    for (const id of turn.promptIds) tokens.push(id);
    for (const id of turn.sampledIds) tokens.push(id);
    for (let at = mask.length; at < tokens.length; at += 1) {
      const sampled = trains ? at - sampledFrom : -1;
      mask.push(sampled < 0 ? 0 : 1);
      logprobs.push(sampled < 0 ? 0 : (turn.logprobs[sampled] ?? 0));
      versions.push(sampled < 0 ? -1 : versionAt(turn, sampled));
    }
  }
  const finishReason = path.at(-1)?.finishReason ?? 'stop';
  const kind = path[0]?.context === first?.context ? 'main' : 'side';
  return { index, kind, tokens, mask, logprobs, versions, finishReason, maskedTurns: reasons };
}

function pathTo(turns: readonly TurnRecord[], leaf: TurnRecord): TurnRecord[] {
  const path: TurnRecord[] = [];
  for (let at: TurnRecord | undefined = leaf; at !== undefined; at = turns[at.parent ?? -1]) path.push(at);
  return path.reverse();
}

function versionAt(turn: TurnRecord, sampled: number): number {
  return turn.versions.find(({ start, end }) => sampled >= start && sampled < end)?.version ?? -1;
}
