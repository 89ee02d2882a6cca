import type { Message } from './conversation.ts';
import type { Model } from './model.ts';
import { continueBranch } from './suffix.ts';

/** One way to continue a branch, and whether the template keeps the earlier text unchanged. Where it does not, the turn forks. */
export interface PrefixCheck {
  readonly what: string;
  readonly kept: boolean;
  /** Null when `kept`. */
  readonly reason: string | null;
}

const user: Message = { role: 'user', text: 'More.' };

const cases = [
  { what: 'a user turn after a plain reply', next: 'user', reasoned: false },
  { what: 'a tool result after a call', next: 'tool', reasoned: false },
  { what: 'a user turn after reasoning', next: 'user', reasoned: true },
  { what: 'a tool result after reasoning', next: 'tool', reasoned: true },
] as const;

/** Checks for each kind of continuation what the gateway checks at every turn. */
export function checkPrefix(model: Model): readonly PrefixCheck[] {
  const callId = model.family.callIds?.make('tool', 0) ?? 'call';
  const result: Message = { role: 'tool', callId, name: 'tool', text: 'Done.' };
  return cases.map(({ what, next, reasoned }) => {
    const branch = { lastSampledId: undefined, reasoned: { last: reasoned, before: false } };
    const continuation = continueBranch(model, [next === 'user' ? user : result], branch);
    return 'fork' in continuation
      ? { what, kept: false, reason: continuation.fork }
      : { what, kept: true, reason: null };
  });
}
