import type { Message, SystemMessage, Tool, UserMessage } from './conversation.ts';

/** The form in which a template takes system messages. Templates do not declare it, so it is found out by rendering some. */
export interface SystemForm {
  /** The number of system messages that it prints before all others. */
  readonly atStart: 'none' | 'one' | 'several';
  /** Whether it prints a later one in its place. */
  readonly later: boolean;
  /** Whether one user message may follow another. */
  readonly userAfterUser: boolean;
  /** Whether a conversation needs a user message, with tools or without. */
  readonly needsUser: boolean;
}

/** The form of a template that prints every system message in its place. */
export const anySystem: SystemForm = { atStart: 'several', later: true, userAfterUser: true, needsUser: false };

const gap = '\n\n';

/**
 * Places system messages so that the template prints each of them. Those at the start become one where the template takes one,
 * and user messages where it takes none. A later one becomes a user message in its place: moved to the start it would change
 * what the model has read before. User messages become one where none may follow another.
 */
export function placeSystem(messages: readonly Message[], form: SystemForm): readonly Message[] {
  const isNot = ({ role }: Message): boolean => role !== 'system';
  const found = messages.findIndex(isNot);
  const first = found < 0 ? messages.length : found;
  const start = messages.slice(0, first).filter((message): message is SystemMessage => message.role === 'system');
  const rest = messages.slice(first).map((message) => (form.later ? message : asUser(message)));
  const lacksUser = form.needsUser && rest.every(({ role }) => role !== 'user');
  const placed = [...placeStart(start, form, lacksUser), ...rest];
  return form.userAfterUser ? placed : joinUsers(placed);
}

function placeStart(start: readonly SystemMessage[], form: SystemForm, lacksUser: boolean): readonly Message[] {
  if (form.atStart === 'none') return start.map(asUser);
  const last = lacksUser ? start.at(-1) : undefined;
  const kept = last === undefined ? start : start.slice(0, -1);
  const user = last === undefined ? [] : [asUser(last)];
  if (form.atStart === 'several' || kept.length < 2) return [...kept, ...user];
  return [{ role: 'system', text: kept.map(({ text }) => text).join(gap) }, ...user];
}

const asUser = (message: Message): Message =>
  message.role === 'system' ? { role: 'user', text: message.text } : message;

function joinUsers(messages: readonly Message[]): readonly Message[] {
  const joined: Message[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.role === 'user' && message.role === 'user') joined[joined.length - 1] = both(last, message);
    else joined.push(message);
  }
  return joined;
}

const both = (first: UserMessage, second: UserMessage): UserMessage => ({
  role: 'user',
  text: `${first.text}${gap}${second.text}`,
});

const [one, two, asked, said] = ['temper-system-1', 'temper-system-2', 'temper-user', 'temper-reply'];
const user: Message = { role: 'user', text: asked };
const reply: Message = { role: 'assistant', text: said, reasoning: '', toolCalls: [] };
const system = (text: string): Message => ({ role: 'system', text });

const tool: Tool = { name: 'tool', description: 'x', parameters: { type: 'object', properties: {} } };

type Render = (messages: readonly Message[], tools: readonly Tool[]) => string | null;

/** Finds out a template's form. `render` returns the text of some messages, or null where the template refuses them. */
export function systemFormOf(render: Render): SystemForm {
  const prints = (messages: readonly Message[], tools: readonly Tool[] = []): boolean => {
    const text = render(messages, tools);
    let at = 0;
    return (
      text !== null &&
      messages.every((message) => {
        at = text.indexOf(message.text, at) + message.text.length;
        return at >= message.text.length;
      })
    );
  };
  const isOne = prints([system(one), user]);
  return {
    atStart: isOne ? (prints([system(one), system(two), user]) ? 'several' : 'one') : 'none',
    later: prints([user, reply, system(one), { ...user, text: two }]),
    userAfterUser: prints([user, { ...user, text: two }]),
    needsUser: isOne && !(prints([system(one)]) && prints([system(one)], [tool])),
  };
}
