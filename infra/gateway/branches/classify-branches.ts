import type { BranchKind } from '../../../workflows/contracts/trace.ts';
import { canonicalMessage } from './canonical.ts';
import { carriesSummaryOf, isTaskOf, openingOf, quotesTaskOf } from './opening.ts';
import type { TurnRecord } from './turn-record.ts';

/** The purpose of each branch of a session. */
export interface BranchClassification {
  /** The kind of the branch that a turn ends. A branch that ends with a summary from which another continues is `compaction`. */
  kindOf(turn: number): BranchKind;
  /** Whether a turn belongs to the main conversation, its summaries and forks included. */
  isMain(turn: number): boolean;
  /** The turn with which a turn's branch began. */
  rootOf(turn: number): number;
  /** The number of branches that count as the main conversation only because nothing shows what they are. */
  readonly unclear: number;
}

/** The origin of a branch: its kind, and the root of the conversation that it continues (its own root, if it begins one). */
interface BranchOrigin {
  readonly kind: BranchKind;
  readonly conversation: number;
}

/** The number of replies searched for a delegating call or a summary: agents act on either at once. */
const recent = 32;

/**
 * Classifies the branches of a session by what their first requests hold: the context (tools and system message), the task in
 * the opening messages, the replies in the history. Only proof moves a branch off the main conversation.
 */
export function classifyBranches(turns: readonly TurnRecord[]): BranchClassification {
  const roots: number[] = [];
  for (const { index, parent } of turns) roots.push(parent === null ? index : (roots[parent] ?? index));
  const rootOf = (turn: number): number => roots[turn] ?? turn;
  const main = mainRoot(turns);
  const { origins, summaries, unclear } =
    main === undefined ? { origins: new Map(), summaries: new Set(), unclear: 0 } : originsOf(turns, main, rootOf);
  const originOf = (turn: number): BranchOrigin | undefined => origins.get(rootOf(turn));
  return {
    rootOf,
    kindOf: (turn) => (summaries.has(turn) ? 'compaction' : (originOf(turn)?.kind ?? 'main')),
    isMain: (turn) => originOf(turn)?.conversation === main?.index,
    unclear,
  };
}

/**
 * Finds the root of the main conversation. Title calls and quota probes may come before it: it is the first root with tools or,
 * where none has tools, the first that continues.
 */
function mainRoot(turns: readonly TurnRecord[]): TurnRecord | undefined {
  const roots = turns.filter(({ parent }) => parent === null);
  const withTools = roots.find(({ offersTools }) => offersTools);
  if (withTools !== undefined) return withTools;
  const parents = new Set(turns.map(({ parent }) => parent));
  const continued = roots.find(({ index }) => parents.has(index));
  return continued === undefined ? roots[0] : roots.find((root) => taskKey(root) === taskKey(continued));
}

function originsOf(turns: readonly TurnRecord[], main: TurnRecord, rootOf: (turn: number) => number) {
  const origins = new Map<number, BranchOrigin>();
  const summaries = new Set<number>();
  const firstOfTask = new Map<string, number>();
  const firstOfRequest = new Map<string, number>();
  const replies = createReplies();
  let unclear = 0;

  function originOf(root: TurnRecord): BranchOrigin {
    if (root === main) return { kind: 'main', conversation: root.index };
    const first = root.sample === undefined ? undefined : origins.get(firstOfRequest.get(root.requestKey) ?? -1);
    if (first !== undefined) return furtherOf(first, root);
    const before = turns.slice(Math.max(0, root.index - recent), root.index);
    const opening = openingOf(root.messages);
    const text = opening.join('\n');
    const same = firstOfTask.get(taskKey(root));
    const known = openingOf((turns[same ?? main.index] ?? main).messages).join('\n');
    const summary = before.findLast(({ reply }) => carriesSummaryOf(text, reply, known))?.index;
    if (same !== undefined) return continuationOf(same, summary);
    const hasFewerTools = !root.offersTools && main.offersTools;
    if (!hasFewerTools) {
      if (before.some(({ reply }) => isTaskOf(opening, reply))) return { kind: 'sub-agent', conversation: root.index };
      // Summaries quote earlier calls, and a rewritten history names what its task names.
      if (summary !== undefined && root.context === main.context) return continuationOf(summary, summary);
      const repeated = replies.find(root);
      if (repeated !== undefined) {
        return continuationOf(repeated, summary ?? (isSummary(repeated, root) ? repeated : undefined));
      }
      if (before.some(({ reply }) => quotesTaskOf(text, reply, known))) {
        return { kind: 'sub-agent', conversation: root.index };
      }
      if (summary !== undefined && root.offersTools) return continuationOf(summary, summary);
    }
    if (hasFewerTools || (root.context !== main.context && !root.offersTools)) {
      return { kind: 'side', conversation: root.index };
    }
    unclear += 1;
    return { kind: 'main', conversation: main.index };
  }

  /** The origin of a branch that continues a conversation, perhaps after a summary. The author of a summary is no side call. */
  function continuationOf(from: number, summary: number | undefined): BranchOrigin {
    const continued = origins.get(rootOf(from)) ?? { kind: 'main', conversation: main.index };
    const isSide = continued.kind === 'side';
    if (summary === undefined) return isSide ? continued : { kind: 'fork', conversation: continued.conversation };
    summaries.add(summary);
    const origin: BranchOrigin = {
      kind: 'compaction',
      conversation: isSide ? main.index : continued.conversation,
    };
    if (origins.get(rootOf(summary))?.kind === 'side') origins.set(rootOf(summary), origin);
    return origin;
  }

  /** Whether a repeated reply is a summary: a side call wrote it, or its history began differently in the same context. */
  function isSummary(repeated: number, { context, messages }: TurnRecord): boolean {
    const first = turns[rootOf(repeated)];
    if (first === undefined || origins.get(first.index)?.kind === 'side') return true;
    return first.context === context && openingOf(first.messages)[0] !== openingOf(messages)[0];
  }

  for (const turn of turns) {
    if (turn.parent === null) {
      origins.set(turn.index, originOf(turn));
      noteFirst(firstOfTask, taskKey(turn), turn.index);
      noteFirst(firstOfRequest, turn.requestKey, turn.index);
    }
    replies.add(turn);
  }
  return { origins, summaries, unclear };
}

/** Returns the origin of a further sample of the request that began another branch: of the same kind, or a fork of the main conversation. */
function furtherOf({ kind, conversation }: BranchOrigin, { index }: TurnRecord): BranchOrigin {
  if (kind === 'sub-agent' || kind === 'side') return { kind, conversation: index };
  return { kind: kind === 'main' ? 'fork' : kind, conversation };
}

function noteFirst(first: Map<string, number>, key: string, turn: number): void {
  if (!first.has(key)) first.set(key, turn);
}

const taskKey = ({ context, messages }: TurnRecord): string => `${context} ${openingOf(messages)[0] ?? ''}`;

/** Finds turns by their replies. Of two equal replies, the one in the same context counts. */
function createReplies() {
  const byText = new Map<string, number>();
  return {
    add({ context, reply, index }: TurnRecord) {
      const text = canonicalMessage(reply);
      byText.set(text, index);
      byText.set(context + text, index);
    },
    /** Returns the turn that gave the last reply in a request's history that this session has given. */
    find({ context, messages }: TurnRecord): number | undefined {
      const replied = messages.filter(({ role }) => role === 'assistant').map((message) => canonicalMessage(message));
      const own = replied.findLast((text) => byText.has(context + text));
      const other = own ?? replied.findLast((text) => byText.has(text));
      return other === undefined ? undefined : (byText.get(context + other) ?? byText.get(other));
    },
  };
}
