import { sampledTokensOf } from '../../workflows/algorithms/turns.ts';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Trace, TranscriptEntry } from '../../workflows/contracts/trace.ts';
import type { Store } from '../store/store.ts';
import type { Branching, Message, Story, TurnFacts } from './data.ts';
import { readTrace } from './read-trace.ts';
import { type TokenName, tokenViews } from './token-view.ts';

/** A rollout with what its blobs hold; what it never came to is null. Tokens are shown where their names are known. */
export async function readStory(store: Store, result: RolloutResult, nameOf: TokenName | null = null): Promise<Story> {
  const { trace: summary, diff, verdict } = result;
  const trace = summary === null ? null : await readTrace(store, summary.trace.digest);
  const shown = trace === null || nameOf === null ? { views: [], segmentsLeft: 0 } : tokenViews(trace, nameOf);
  return {
    result,
    messages: trace === null ? [] : messagesOf(trace),
    branching: trace === null ? null : branchingOf(trace),
    tokens: shown.views,
    segmentsLeft: shown.segmentsLeft,
    patch: diff === null ? null : await readText(store, diff.patch),
    testLog: verdict === null ? null : await readText(store, verdict.log),
  };
}

/** Bytes that are no text become replacement characters: it is for reading only. */
async function readText(store: Store, { digest }: BlobRef): Promise<string> {
  return Buffer.from(await store.get(digest)).toString('utf8');
}

function branchingOf({ branches, counts, maskedTurns }: Trace): Branching | null {
  return branches === undefined || counts === undefined ? null : { branches, counts, maskedTurns };
}

/** The conversation. In traces that don't say so, the n-th thing that the policy said is turn n. */
function messagesOf({ turns, transcript }: Trace): Message[] {
  const isTold = transcript.some(({ turn }) => turn !== undefined);
  let said = 0;
  return transcript.map((entry) => {
    const { role, turn: told } = entry;
    const text = spokenText(entry);
    if (role !== 'assistant' || (isTold && told === undefined)) return { role, text, turn: null };
    const turn = turns[told ?? said];
    said += 1;
    return { role, text, turn: turn === undefined ? null : turnFacts(turn) };
  });
}

function spokenText({ text, reasoning = '', calls = [] }: TranscriptEntry): string {
  const thought = reasoning === '' ? '' : `(thinks) ${reasoning}`;
  const called = calls.map(({ name, arguments: args }) => `${name}(${args})`);
  return [thought, text, ...called].filter((part) => part !== '').join('\n');
}

function turnFacts(turn: Trace['turns'][number]): TurnFacts {
  return {
    index: turn.index,
    tokens: sampledTokensOf(turn),
    seconds: (turn.endedAt - turn.startedAt) / 1000,
    versions: turn.versions.map(({ version }) => version),
    ...(turn.upstream !== undefined && { model: turn.upstream.model }),
  };
}
