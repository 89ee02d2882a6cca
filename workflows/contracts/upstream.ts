import { z } from 'zod';
import { text } from './input.ts';

/** The name by which an input refers to an upstream model. The operator's upstreams.json holds its address and secrets. */
export const upstreamName = text('the name of an upstream model, as upstreams.json has it').regex(
  /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,59}$/,
  { error: 'expected a name of letters, digits, ".", "_" and "-", at most 60' },
);

/** A third-party model, which is evaluated and never trained: its server returns texts and counts, no token ids. */
export const upstream = z.strictObject({
  name: z.string(),
  model: z.string().describe('The name under which its server knows it.'),
});
export type Upstream = Readonly<z.output<typeof upstream>>;
