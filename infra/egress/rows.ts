import { z } from 'zod';
import { networkPhases } from '../../workflows/contracts/network.ts';
import { decisions } from './refused.ts';

/** The requests of a sandbox for one host and port with one decision. */
const egressRow = z.object({
  /** Empty where the request named no valid host, and for what is beyond the limit of rows. */
  host: z.string(),
  port: z.number(),
  phase: z.enum(networkPhases),
  decision: z.enum(decisions),
  requests: z.number(),
  bytesIn: z.number(),
  bytesOut: z.number(),
});
export type EgressRow = Readonly<z.output<typeof egressRow>>;

/** Parses rows that an earlier process of this host has written. */
export const parseRows = (text: string): readonly EgressRow[] => z.array(egressRow).parse(JSON.parse(text));
