import { z } from 'zod';
import type { TokenSampling } from '../../../../workflows/contracts/trace.ts';

/** The sampling parameters of a request, the same in all dialects. Engines reject values outside these bounds. */
export const samplingFields = {
  temperature: z.number().min(0).max(10).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
};

type SamplingFields = z.output<z.ZodObject<typeof samplingFields>>;

/** Returns the parameters that the client sent, without those that it left to the run. */
export const samplingOf = ({ temperature, top_p, top_k }: SamplingFields): Partial<TokenSampling> => ({
  ...(temperature != null && { temperature }),
  ...(top_p != null && { topP: top_p }),
  // Vendors use 0 to turn it off, engines -1.
  ...(top_k != null && { topK: top_k === 0 ? -1 : top_k }),
});
