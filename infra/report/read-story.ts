import { z } from 'zod';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Trace } from '../../workflows/contracts/trace.ts';
import type { Store } from '../store/store.ts';
import type { Message, Story, TurnFacts } from './data.ts';

const traceShape = z.looseObject({
  turns: z.array(z.looseObject({ index: z.int(), sampledIds: z.array(z.int()) })),
  transcript: z.array(z.looseObject({ role: z.string(), text: z.string() })),
});

/** A rollout with what its blobs hold; what it never came to is null. */
export async function readStory(store: Store, result: RolloutResult): Promise<Story> {
  const { trace, diff, verdict } = result;
  return {
    result,
    messages: trace === null ? [] : messagesOf(await readTrace(store, trace.trace)),
    patch: diff === null ? null : await readText(store, diff.patch),
    testLog: verdict === null ? null : await readText(store, verdict.log),
  };
}

async function readTrace(store: Store, { digest }: BlobRef): Promise<Pick<Trace, 'turns' | 'transcript'>> {
  return traceShape.parse(await store.getJson(digest)) as unknown as Trace;
}

/** Bytes that are no text become replacement characters: it is for reading only. */
async function readText(store: Store, { digest }: BlobRef): Promise<string> {
  return Buffer.from(await store.get(digest)).toString('utf8');
}

/** The conversation; the n-th thing that the policy said is turn n. */
function messagesOf({ turns, transcript }: Pick<Trace, 'turns' | 'transcript'>): Message[] {
  let said = 0;
  return transcript.map(({ role, text }) => {
    if (role !== 'assistant') return { role, text, turn: null };
    const turn = turns[said];
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
