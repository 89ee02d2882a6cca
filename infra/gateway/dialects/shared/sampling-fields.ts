import { z } from 'zod';
import type { TokenSampling } from '../../../../workflows/contracts/trace.ts';

/** How a client asks for sampling, in all dialects alike. Engines refuse what is outside of these bounds. */
export const samplingFields = {
  temperature: z.number().min(0).max(10).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
};

type SamplingFields = z.output<z.ZodObject<typeof samplingFields>>;

/** What it asked for, and nothing for what it left to the run. */
export const samplingOf = ({ temperature, top_p, top_k }: SamplingFields): Partial<TokenSampling> => ({
  ...(temperature != null && { temperature }),
  ...(top_p != null && { topP: top_p }),
  // Vendors and engines differ in which of the two means that it is off.
  ...(top_k != null && { topK: top_k === 0 ? -1 : top_k }),
});
