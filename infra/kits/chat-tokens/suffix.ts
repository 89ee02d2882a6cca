import type { Message, ToolCall } from './conversation.ts';
import { TemplateRejection } from './errors.ts';
import type { Model } from './model.ts';
import { renderText } from './render.ts';

/** The facts about a branch that decide what may follow its last reply. */
export interface RenderedBranch {
  readonly lastSampledId: number | undefined;
  /** Whether its last reply, and any earlier one, has reasoning. Templates may drop reasoning once something follows. */
  readonly reasoned: { readonly last: boolean; readonly before: boolean };
}

/** The ids to append, or the reason why the template does not keep the earlier text. */
export type Continuation = { readonly ids: readonly number[] } | { readonly fork: string };

/**
 * Returns the ids to append to a branch so that `messages` follow the model's reply and the next reply can begin: the rest of
 * the turn's closing, the messages, and the opening of the reply. They are rendered after a stand-in for the reply, so that
 * the cost depends on the new messages only. Where the template would now write earlier text differently, it returns the
 * reason instead, and only a full render is correct.
 */
export function continueBranch(model: Model, messages: readonly Message[], branch: RenderedBranch): Continuation {
  const { last, before } = branch.reasoned;
  // The template must keep the reasoning of earlier replies as well as the form of the last one.
  const earlier = before && !last ? suffixAfter(model, messages, true) : null;
  if (earlier !== null && 'fork' in earlier) return earlier;
  const suffix = suffixAfter(model, messages, last);
  if ('fork' in suffix) return suffix;
  const { ids, closing } = suffix;
  const sampled = branch.lastSampledId;
  if (sampled === undefined || !model.stopTokenIds.includes(sampled)) return { ids: ids.slice(closing.length - 1) };
  if (sampled === closing.at(-1)) return { ids: ids.slice(closing.length) };
  return { fork: 'the reply ended with a different token than the template writes there' };
}

/** The ids that `continueBranch` returns; null where only a full render is correct. */
export function renderSuffix(
  model: Model,
  messages: readonly Message[],
  branch: RenderedBranch,
): readonly number[] | null {
  const continuation = continueBranch(model, messages, branch);
  return 'ids' in continuation ? continuation.ids : null;
}

interface Suffix {
  /** The ids that follow the reply's own text. */
  readonly ids: readonly number[];
  /** The first of these ids, which end the reply; the last of them is a stop token of the model. */
  readonly closing: readonly number[];
}

type Failure = { readonly fork: string };

function suffixAfter(model: Model, messages: readonly Message[], reasoned: boolean): Suffix | Failure {
  const role = messages[0]?.role;
  if (role === undefined || role === 'assistant') return { fork: 'nothing that could follow a reply was added' };
  if (messages.some((message) => message.role === 'tool' && model.family.callIds?.isValid(message.callId) === false)) {
    return { fork: 'the result names its call by a different id than the model' };
  }
  const boundary = knownBoundary(model, role, reasoned);
  if ('fork' in boundary) return boundary;
  const tail = tailAfter(model, opening, messages, reasoned);
  if (typeof tail !== 'string') return tail;
  const ids = model.tokens.encode(tail);
  const { closing } = boundary;
  if (closing.some((id, at) => ids[at] !== id)) return { fork: 'the template ends the reply differently before these' };
  return { ids, closing };
}

/** The part of a suffix that does not depend on the messages that follow. */
type Boundary = Pick<Suffix, 'closing'>;

const boundaries = new WeakMap<Model, Map<string, Boundary>>();

function knownBoundary(model: Model, role: Follower['role'], reasoned: boolean): Boundary | Failure {
  const known = boundaries.get(model) ?? new Map<string, Boundary>();
  boundaries.set(model, known);
  const key = `${role}/${reasoned}`;
  const boundary = known.get(key) ?? findBoundary(model, role, reasoned);
  // Failures are not cached: a template that prints the date can fail once, at midnight.
  if ('closing' in boundary) known.set(key, boundary);
  return boundary;
}

/** Renders twice, once after an earlier round of messages: some templates write their first turns differently. */
function findBoundary(model: Model, role: Follower['role'], reasoned: boolean): Boundary | Failure {
  const messages = [follower(model, role)];
  const later = [...opening, standIn(model, messages, reasoned, 'earlier'), ...messages];
  const first = tailAfter(model, opening, messages, reasoned);
  if (typeof first !== 'string') return first;
  const second = tailAfter(model, later, messages, reasoned);
  if (typeof second !== 'string') return second;
  if (first !== second) return { fork: 'the template writes a later turn differently from the first one' };
  // Only up to the follower's text: a stop token after it would end the follower, not the reply.
  const ids = model.tokens.encode(first.split(followerText)[0] ?? '');
  const stop = ids.findIndex((id) => model.stopTokenIds.includes(id));
  if (stop < 0) return { fork: 'the template ends an earlier reply without a stop token of the model' };
  return { closing: ids.slice(0, stop + 1) };
}

/** The text that follows the stand-in reply's own text, when the reply stands between `head` and `messages`. */
function tailAfter(
  model: Model,
  head: readonly Message[],
  messages: readonly Message[],
  reasoned: boolean,
): string | Failure {
  const prompt = textOrFailure(model, head);
  if (typeof prompt !== 'string') return prompt;
  const reply = standIn(model, messages, reasoned, replyText);
  const whole = textOrFailure(model, [...head, reply, ...messages]);
  if (typeof whole !== 'string') return whole;
  const common = commonLength(whole, prompt);
  const at = whole.indexOf(replyText, common);
  if (at < 0) return { fork: 'the template leaves out the reply' };
  const thought = reasoned ? whole.lastIndexOf(thoughtText, at) : at;
  if (thought < common) return { fork: 'the template drops the reasoning of earlier replies' };
  if (common < prompt.length) {
    const begun = JSON.stringify(prompt.slice(common));
    return { fork: `the template begins a reply with ${begun}, and leaves that out once something follows` };
  }
  return whole.slice(at + replyText.length);
}

const replyText = 'temper-reply-ends-here';
const thoughtText = 'temper-thought';
const followerText = 'temper-follower';

const opening: readonly Message[] = [{ role: 'user', text: 'x' }];

type Follower = Exclude<Message, { role: 'assistant' }>;

function follower({ family }: Model, role: Follower['role']): Follower {
  if (role !== 'tool') return { role, text: followerText };
  return { role, callId: family.callIds?.make('tool', 0) ?? 'call', name: 'tool', text: followerText };
}

/**
 * A reply that ends in `text` and makes the calls that `messages` answer, since some templates refuse a result without its call.
 * Where the template prints one call, it makes the last one.
 */
function standIn(model: Model, messages: readonly Message[], reasoned: boolean, text: string): Message {
  const others = messages.findIndex(({ role }) => role !== 'tool');
  const answered = others < 0 ? messages : messages.slice(0, others);
  const toolCalls = answered.flatMap((message, at): ToolCall[] => {
    if (message.role !== 'tool') return [];
    const args = at === answered.length - 1 ? { x: text } : {};
    return [{ id: message.callId, name: message.name ?? 'tool', arguments: JSON.stringify(args) }];
  });
  const inCall = toolCalls.length > 0 && model.argumentsForm !== 'none';
  const made = model.severalCalls ? toolCalls : toolCalls.slice(-1);
  return { role: 'assistant', text: inCall ? '' : text, reasoning: reasoned ? thoughtText : '', toolCalls: made };
}

/** Returns a failure also where the template refuses a conversation that begins in the middle. */
function textOrFailure(model: Model, messages: readonly Message[]): string | Failure {
  try {
    return renderText(model, messages, [], 'reply');
  } catch (error) {
    if (error instanceof TemplateRejection) return { fork: error.message };
    throw error;
  }
}

function commonLength(left: string, right: string): number {
  let length = 0;
  while (length < right.length && left[length] === right[length]) length += 1;
  return length;
}
