import { pathTo } from '../../../workflows/algorithms/turns.ts';
import { type Branch, type BranchRule, type Segment, trainAllBranches } from '../../../workflows/contracts/trace.ts';
import { type BranchClassification, classifyBranches } from './classify-branches.ts';
import { type CheckedTurns, checkTurns } from './token-check.ts';
import type { TurnRecord } from './turn-record.ts';

type MaskedTurn = Segment['maskedTurns'][number];

/**
 * The largest number of tokens of all segments of one trace, which is one JSON text. A token takes up to 40 characters in it,
 * mostly 15, and V8 has no strings of more than 536 million. Only forks of long conversations, hundreds of them, come near it.
 */
const mostTokens = 16_000_000;

/** The turns of a session with everything that the rule decides by. */
interface SessionTree {
  readonly turns: readonly TurnRecord[];
  readonly leaves: readonly TurnRecord[];
  readonly classification: BranchClassification;
  readonly checked: CheckedTurns;
}

export interface Built {
  readonly segments: readonly Segment[];
  readonly branches: readonly Branch[];
  readonly classification: BranchClassification;
  readonly masked: ReadonlyMap<number, string>;
  /** Sampled tokens that passed the check and that no segment trains. */
  readonly droppedTokens: number;
}

/**
 * Builds one branch per leaf of the tree of turns, and one segment per branch that the rule trains. Each sampled token is
 * trained in one of the segments that contain it, and is context in the others. A branch without tokens of its own to train
 * gets no segment.
 *
 * @param most The largest number of tokens of all segments together. Only tests set it.
 */
export function buildSegments(
  turns: readonly TurnRecord[],
  rule: BranchRule = trainAllBranches,
  most: number = mostTokens,
): Built {
  const classification = classifyBranches(turns);
  const checked = checkTurns(turns, rule.trainCutTurns === true);
  const parents = new Set(turns.map((turn) => turn.parent));
  const leaves = turns.filter(({ index }) => !parents.has(index));
  const tree: SessionTree = { turns, leaves, classification, checked };
  const chosen = choose(tree, rule, most);
  const segments: Segment[] = [];
  const branches = leaves.map((leaf, index): Branch => {
    const { path, dropped, trains } = chosen.get(leaf.index) ?? notTrained;
    if (trains.size > 0) segments.push(buildSegment(tree, segments.length, path, trains));
    const segment = trains.size > 0 ? segments.length - 1 : null;
    return { ...branchOf(tree, leaf, index), segment, dropped };
  });
  const trained = new Set([...chosen.values()].flatMap(({ trains }) => [...trains]));
  const left = turns.filter(({ index }) => !checked.masked.has(index) && !trained.has(index));
  const droppedTokens = left.reduce((sum, { sampledIds }) => sum + sampledIds.length, 0);
  return { segments, branches, classification, masked: checked.masked, droppedTokens };
}

interface TrainedPath {
  readonly path: readonly TurnRecord[];
  /** The turns whose tokens this branch trains; empty when it gets no segment. */
  readonly trains: ReadonlySet<number>;
  readonly dropped: Branch['dropped'];
}

const notTrained: TrainedPath = { path: [], trains: new Set(), dropped: 'rule' };

/** Chooses the trained path of each leaf. The branch on which the main conversation ended comes first, so that no limit drops it. */
function choose(
  { turns, leaves, classification, checked }: SessionTree,
  rule: BranchRule,
  most: number,
): Map<number, TrainedPath> {
  const { masked, ends } = checked;
  const chosen = new Map<number, TrainedPath>();
  const trained = new Set<number>();
  const maxTokens = rule.maxSegmentTokens ?? Number.POSITIVE_INFINITY;
  const final = leaves.findLast(({ index }) => classification.isMain(index));
  const others = rule.train === 'all' ? leaves.filter((leaf) => leaf !== final) : [];
  let segmentsLeft = rule.maxSegments ?? Number.POSITIVE_INFINITY;
  let tokensLeft = most;
  for (const leaf of final === undefined ? others : [final, ...others]) {
    if (classification.kindOf(leaf.index) === 'side') continue;
    const whole = pathTo(turns, leaf);
    // The tokens of a turn that the agent's end cut come last, where they are context of no others.
    const kept = masked.get(leaf.index) === 'aborted' ? whole.slice(0, -1) : whole;
    const path = kept.filter(({ index }) => (ends[index]?.length ?? 0) <= maxTokens);
    const trains = new Set(path.map(({ index }) => index).filter((at) => !masked.has(at) && !trained.has(at)));
    const cut = path.length < kept.length ? 'token-limit' : null;
    const tokens = ends[path.at(-1)?.index ?? -1]?.length ?? 0;
    if (trains.size === 0) chosen.set(leaf.index, { path, trains, dropped: cut ?? 'nothing-to-train' });
    else if (segmentsLeft === 0 || tokens > tokensLeft)
      chosen.set(leaf.index, { ...notTrained, dropped: 'segment-limit' });
    else {
      for (const at of trains) trained.add(at);
      chosen.set(leaf.index, { path, trains, dropped: cut });
      segmentsLeft -= 1;
      tokensLeft -= tokens;
    }
  }
  return chosen;
}

function branchOf({ classification, checked }: SessionTree, leaf: TurnRecord, index: number) {
  const { length = 0, turns = 0, aborts = 0 } = checked.ends[leaf.index] ?? {};
  const { finishReason, index: lastTurn } = leaf;
  const kind = classification.kindOf(lastTurn);
  return {
    index,
    kind,
    ...(!classification.isMain(lastTurn) && { aside: true as const }),
    ...(leaf.reply.toolCalls.length > 0 && { open: true as const }),
    firstTurn: classification.rootOf(lastTurn),
    lastTurn,
    turns,
    tokens: length,
    finishReason,
    aborts,
  };
}

function buildSegment(
  { classification, checked: { masked, ends } }: SessionTree,
  index: number,
  path: readonly TurnRecord[],
  trains: ReadonlySet<number>,
): Segment {
  const tokens: number[] = [];
  const mask: (0 | 1)[] = [];
  const logprobs: number[] = [];
  const versions: number[] = [];
  const reasons: MaskedTurn[] = [];
  for (const turn of path) {
    const reason = masked.get(turn.index);
    if (reason !== undefined) reasons.push({ turn: turn.index, reason });
    const sampledFrom = tokens.length + turn.promptIds.length;
    for (const id of turn.promptIds) tokens.push(id);
    for (const id of turn.sampledIds) tokens.push(id);
    for (let at = mask.length; at < tokens.length; at += 1) {
      const sampled = trains.has(turn.index) ? at - sampledFrom : -1;
      mask.push(sampled < 0 ? 0 : 1);
      logprobs.push(sampled < 0 ? 0 : (turn.logprobs[sampled] ?? 0));
      versions.push(sampled < 0 ? -1 : versionAt(turn, sampled));
    }
  }
  const last = path.at(-1);
  const kind = classification.kindOf(last?.index ?? 0);
  const aborts = ends[last?.index ?? -1]?.aborts ?? 0;
  const finishReason = last?.finishReason ?? 'stop';
  return { index, kind, tokens, mask, logprobs, versions, finishReason, aborts, maskedTurns: reasons };
}

function versionAt(turn: TurnRecord, sampled: number): number {
  return turn.versions.find(({ start, end }) => sampled >= start && sampled < end)?.version ?? -1;
}
