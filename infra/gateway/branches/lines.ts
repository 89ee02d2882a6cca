import type { BranchKind } from '../../../workflows/contracts/trace.ts';
import { canonicalMessage } from '../../kits/chat-tokens/index.ts';
import { carriesSummaryOf, isTaskOf, openingOf, quotesTaskOf } from './opening.ts';
import type { TurnRecord } from './turn-record.ts';

/** What each branch of a session is for. */
export interface Lines {
  /** Of the branch that a turn ends; one that ends with a summary, which another goes on with, was made to write it. */
  kindOf(turn: number): BranchKind;
  /** Does it belong to the agent's own line, its summaries and forks included? */
  isMain(turn: number): boolean;
  /** The turn that its branch began with. */
  rootOf(turn: number): number;
  /** Branches that stayed on the main line since nothing tells what they are. */
  readonly unclear: number;
}

/** A root's place: its kind, and the root of the line that it goes on with (itself, when it begins one). */
interface Place {
  readonly kind: BranchKind;
  readonly line: number;
}

/** How many replies back a dispatch call or a summary is looked for: agents act on either at once. */
const recent = 32;

/**
 * Sorts the branches of a session by what their first requests hold: the context (tools and system message), the task in
 * the opening messages, the replies in the history. Only proof moves a branch off the main line.
 */
export function linesOf(turns: readonly TurnRecord[]): Lines {
  const roots: number[] = [];
  for (const { index, parent } of turns) roots.push(parent === null ? index : (roots[parent] ?? index));
  const rootOf = (turn: number): number => roots[turn] ?? turn;
  const main = mainRoot(turns);
  const { places, summaries, unclear } =
    main === undefined ? { places: new Map(), summaries: new Set(), unclear: 0 } : placesOf(turns, main, rootOf);
  const placeOf = (turn: number): Place | undefined => places.get(rootOf(turn));
  return {
    rootOf,
    kindOf: (turn) => (summaries.has(turn) ? 'compaction' : (placeOf(turn)?.kind ?? 'main')),
    isMain: (turn) => placeOf(turn)?.line === main?.index,
    unclear,
  };
}

/** Title calls and quota probes may come first: the agent's own line has tools or, where nobody has any, goes on. */
function mainRoot(turns: readonly TurnRecord[]): TurnRecord | undefined {
  const roots = turns.filter(({ parent }) => parent === null);
  const withTools = roots.find(({ offersTools }) => offersTools === true);
  if (withTools !== undefined) return withTools;
  const parents = new Set(turns.map(({ parent }) => parent));
  const continued = roots.find(({ index }) => parents.has(index));
  return continued === undefined ? roots[0] : roots.find((root) => taskKey(root) === taskKey(continued));
}

function placesOf(turns: readonly TurnRecord[], main: TurnRecord, rootOf: (turn: number) => number) {
  const places = new Map<number, Place>();
  const summaries = new Set<number>();
  const firstOfTask = new Map<string, number>();
  const replies = createReplies();
  let unclear = 0;

  function placeOf(root: TurnRecord): Place {
    if (root === main) return { kind: 'main', line: root.index };
    const before = turns.slice(Math.max(0, root.index - recent), root.index);
    const opening = openingOf(root.messages);
    const text = opening.join('\n');
    const same = firstOfTask.get(taskKey(root));
    const known = openingOf((turns[same ?? main.index] ?? main).messages).join('\n');
    const summary = before.findLast(({ reply }) => carriesSummaryOf(text, reply, known))?.index;
    if (same !== undefined) return goOn(same, summary);
    const hasFewerTools = root.offersTools === false && main.offersTools === true;
    if (!hasFewerTools) {
      if (before.some(({ reply }) => isTaskOf(opening, reply))) return { kind: 'sub-agent', line: root.index };
      // Summaries quote what was called, and a history told anew names what its task names.
      if (summary !== undefined && root.context === main.context) return goOn(summary, summary);
      const retold = replies.find(root);
      if (retold !== undefined) return goOn(retold, summary ?? (isSummary(retold, root) ? retold : undefined));
      if (before.some(({ reply }) => quotesTaskOf(text, reply, known))) return { kind: 'sub-agent', line: root.index };
      if (summary !== undefined && root.offersTools !== false) return goOn(summary, summary);
    }
    if (hasFewerTools || (root.context !== main.context && root.offersTools !== true)) {
      return { kind: 'side', line: root.index };
    }
    unclear += 1;
    return { kind: 'main', line: main.index };
  }

  /** A line goes on, maybe behind a summary. A side call that wrote the summary was none. */
  function goOn(from: number, summary: number | undefined): Place {
    const origin = places.get(rootOf(from)) ?? { kind: 'main', line: main.index };
    if (summary === undefined) return origin.kind === 'side' ? origin : { kind: 'fork', line: origin.line };
    summaries.add(summary);
    const place: Place = { kind: 'compaction', line: origin.kind === 'side' ? main.index : origin.line };
    if (places.get(rootOf(summary))?.kind === 'side') places.set(rootOf(summary), place);
    return place;
  }

  /** In a history that began otherwise, under the same tools and system message, or written by a side call. */
  function isSummary(retold: number, { context, messages }: TurnRecord): boolean {
    const first = turns[rootOf(retold)];
    if (first === undefined || places.get(first.index)?.kind === 'side') return true;
    return first.context === context && openingOf(first.messages)[0] !== openingOf(messages)[0];
  }

  for (const turn of turns) {
    if (turn.parent === null) {
      places.set(turn.index, placeOf(turn));
      if (!firstOfTask.has(taskKey(turn))) firstOfTask.set(taskKey(turn), turn.index);
    }
    replies.add(turn);
  }
  return { places, summaries, unclear };
}

const taskKey = ({ context, messages }: TurnRecord): string => `${context} ${openingOf(messages)[0] ?? ''}`;

/** Which turn said what; where two said the same, the one with the asker's context counts. */
function createReplies() {
  const byText = new Map<string, number>();
  return {
    add({ context, reply, index }: TurnRecord) {
      const text = canonicalMessage(reply);
      byText.set(text, index);
      byText.set(context + text, index);
    },
    /** The turn that gave the last reply in a request's history which was given in this session. */
    find({ context, messages }: TurnRecord): number | undefined {
      const told = messages.filter(({ role }) => role === 'assistant').map((message) => canonicalMessage(message));
      const own = told.findLast((text) => byText.has(context + text));
      const other = own ?? told.findLast((text) => byText.has(text));
      return other === undefined ? undefined : (byText.get(context + other) ?? byText.get(other));
    },
  };
}
