import { z } from 'zod';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Trace } from '../../workflows/contracts/trace.ts';
import type { Store } from '../store/store.ts';
import type { Branching, Message, Story, TurnFacts } from './data.ts';

type Read = Pick<Trace, 'turns' | 'transcript' | 'branches' | 'counts' | 'maskedTurns'>;

const traceShape = z.looseObject({
  turns: z.array(z.looseObject({ index: z.int(), sampledIds: z.array(z.int()) })),
  transcript: z.array(z.looseObject({ role: z.string(), text: z.string(), turn: z.int().optional() })),
  branches: z.array(z.looseObject({ kind: z.string() })).optional(),
  counts: z.looseObject({}).optional(),
  maskedTurns: z.array(z.looseObject({ turn: z.int(), reason: z.string() })).default([]),
});

/** A rollout with what its blobs hold; what it never came to is null. */
export async function readStory(store: Store, result: RolloutResult): Promise<Story> {
  const { trace: summary, diff, verdict } = result;
  const trace = summary === null ? null : await readTrace(store, summary.trace);
  return {
    result,
    messages: trace === null ? [] : messagesOf(trace),
    branching: trace === null ? null : branchingOf(trace),
    patch: diff === null ? null : await readText(store, diff.patch),
    testLog: verdict === null ? null : await readText(store, verdict.log),
  };
}

async function readTrace(store: Store, { digest }: BlobRef): Promise<Read> {
  return traceShape.parse(await store.getJson(digest)) as unknown as Read;
}

/** Bytes that are no text become replacement characters: it is for reading only. */
async function readText(store: Store, { digest }: BlobRef): Promise<string> {
  return Buffer.from(await store.get(digest)).toString('utf8');
}

function branchingOf({ branches, counts, maskedTurns }: Read): Branching | null {
  return branches === undefined || counts === undefined ? null : { branches, counts, maskedTurns };
}

/** The conversation. In traces that don't say so, the n-th thing that the policy said is turn n. */
function messagesOf({ turns, transcript }: Read): Message[] {
  const isTold = transcript.some(({ turn }) => turn !== undefined);
  let said = 0;
  return transcript.map(({ role, text, turn: told }) => {
    if (role !== 'assistant' || (isTold && told === undefined)) return { role, text, turn: null };
    const turn = turns[told ?? said];
    said += 1;
    return { role, text, turn: turn === undefined ? null : turnFacts(turn) };
  });
}

function turnFacts(turn: Trace['turns'][number]): TurnFacts {
  return {
    index: turn.index,
    tokens: turn.sampledIds.length,
    seconds: (turn.endedAt - turn.startedAt) / 1000,
    versions: turn.versions.map(({ version }) => version),
  };
}
