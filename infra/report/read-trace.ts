import { z } from 'zod';
import type { Trace } from '../../workflows/contracts/trace.ts';
import type { Store } from '../store/store.ts';

const call = z.looseObject({ id: z.string(), name: z.string(), arguments: z.string() });
const numbers = z.array(z.number());

/** The schema of a trace. An older version of temper may have written it, so newer fields may be missing. */
const trace = z.looseObject({
  session: z.string().default(''),
  turns: z.array(
    z.looseObject({
      index: z.int(),
      parent: z.int().nullable().default(null),
      promptIds: numbers.default([]),
      promptLength: z.int().default(0),
      sampledIds: numbers,
      logprobs: numbers.default([]),
    }),
  ),
  segments: z.array(z.looseObject({ tokens: numbers, mask: numbers })).default([]),
  branches: z.array(z.looseObject({ kind: z.string(), lastTurn: z.int() })).optional(),
  counts: z.looseObject({}).optional(),
  maskedTurns: z.array(z.looseObject({ turn: z.int(), reason: z.string() })).default([]),
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
