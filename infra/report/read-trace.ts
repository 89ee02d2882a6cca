import { z } from 'zod';
import type { Trace } from '../../workflows/contracts/trace.ts';
import type { Store } from '../store/store.ts';

const call = z.looseObject({ id: z.string(), name: z.string(), arguments: z.string() });
const numbers = z.array(z.number());

/** The schema of a trace, as far as reports and warm-ups need it. */
const trace = z.looseObject({
  session: z.string(),
  turns: z.array(
    z.looseObject({
      index: z.int(),
      parent: z.int().nullable(),
      promptIds: numbers,
      promptLength: z.int(),
      sampledIds: numbers,
      logprobs: numbers,
    }),
  ),
  segments: z.array(z.looseObject({ tokens: numbers, mask: numbers })),
  branches: z.array(z.looseObject({ kind: z.string(), lastTurn: z.int() })),
  counts: z.looseObject({}),
  maskedTurns: z.array(z.looseObject({ turn: z.int(), reason: z.string() })),
  transcript: z.array(
    z.looseObject({
      role: z.string(),
      text: z.string(),
      calls: z.array(call).optional(),
      turn: z.int().optional(),
    }),
  ),
});

/** Reads and checks a trace from the store. */
export async function readTrace(store: Pick<Store, 'getJson'>, digest: string): Promise<Trace> {
  return trace.parse(await store.getJson(digest)) as unknown as Trace;
}
