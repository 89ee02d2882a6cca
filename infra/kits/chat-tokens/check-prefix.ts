import type { Message } from './conversation.ts';
import type { Model } from './model.ts';
import { continueBranch } from './suffix.ts';

/** Whether a template keeps what came before once something follows a reply. Where it does not, such a turn forks. */
export interface PrefixCheck {
  readonly what: string;
  readonly kept: boolean;
  /** Null when it is kept. */
  readonly reason: string | null;
}

const user: Message = { role: 'user', text: 'More.' };

const cases = [
  { what: 'a user turn after a plain reply', next: 'user', reasoned: false },
  { what: 'a tool result after a call', next: 'tool', reasoned: false },
  { what: 'a user turn after reasoning', next: 'user', reasoned: true },
  { what: 'a tool result after reasoning', next: 'tool', reasoned: true },
] as const;

/** Asks what the gateway asks in every turn. */
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
