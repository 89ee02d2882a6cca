import { text } from './input.ts';

/** The name by which an input refers to an upstream model. The operator's upstreams.json holds its address and secrets. */
export const upstreamName = text('the name of an upstream model, as upstreams.json has it').regex(
  /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,59}$/,
  { error: 'expected a name of letters, digits, ".", "_" and "-", at most 60' },
);

/** A third-party model, which is evaluated and never trained: its server returns texts and counts, no token ids. */
export interface Upstream {
  readonly name: string;
  /** The name under which its server knows it. */
  readonly model: string;
}
