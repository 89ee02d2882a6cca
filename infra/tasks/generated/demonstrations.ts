import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { systemPrompt } from '../../agents/mini/prompt.ts';
import { describeTool, tools } from '../../agents/mini/tools.ts';
import {
  type AssistantMessage,
  type Conversation,
  type Message,
  type Model,
  renderFull,
  renderSuffix,
  renderText,
} from '../../kits/chat-tokens/index.ts';
import { parseSetAddress } from '../addresses.ts';
import { type Bug, bugAt, type Operator, operators, sourceOf } from './bug.ts';
import { instructionOf } from './generate.ts';
import { createRandom } from './random.ts';

/** One rollout of mini as a supervised example: ids as the gateway's ledger would hold them. */
export interface Demonstration {
  readonly tokens: readonly number[];
  /** 1 where the token is the policy's. */
  readonly mask: readonly (0 | 1)[];
  /** How much a token counts in the warm-up's loss: 0 where it isn't the policy's. */
  readonly emphasis: readonly number[];
  /** Does it choose the operator that the task asks for? */
  readonly right: boolean;
}

export interface DemonstrationOptions {
  readonly model: Model;
  /** A generated set; others have no demonstrations. */
  readonly tasks: string;
  readonly seed: number;
  /** Share of them that make the right choice; the others make one of the mistakes that go with the task's word. */
  readonly rightShare: number;
}

/** Of a set without end, demonstrations are at numbers that no training task has; of one with an end, on its own tasks. */
const firstNumber = 1_000_000_000;

/** Until then a policy learns to copy. */
const earlyExamples = 1600;

interface Emphasis {
  readonly copied: number;
  readonly choice: number;
}

/**
 * Syntax, which counts 1, is learned by the way; copying from file and instruction is what takes a small policy long. Choices
 * count little until it can copy: while it can't tell an edit's two texts apart, they would only unlearn that. The few
 * tasks of a set with an end are learnt by heart, every token alike.
 */
function emphasisAt(tasks: number | null, index: number): Emphasis {
  if (tasks !== null) return { copied: 1, choice: 1 };
  return { copied: 15, choice: index < earlyExamples ? 1 : 10 };
}

/** Each index gives a valid edit of another task. Throws TemperFailure InvalidInput when the set has none. */
export function createDemonstrations(options: DemonstrationOptions): (index: number) => Demonstration {
  const { model, tasks, seed, rightShare } = options;
  const set = parseSetAddress(tasks);
  if (set.kind !== 'generated') {
    throw new TemperFailure(
      'InvalidInput',
      `warmUp: expected a generated task set, which has demonstrations, got ${tasks}`,
    );
  }
  const first = createRandom(`demonstration/${seed}`).unit();
  // Words take turns in a set without end, tasks in one with an end.
  const apart = set.count ?? operators.length;
  return (index) => {
    const bug = bugAt(set.split, set.seed, set.count === null ? firstNumber + index : index % set.count);
    const turn = Math.floor(index / apart) + operators.indexOf(bug.goal);
    const chosen = choiceAt(bug, (first + turn * goldenRatio) % 1, rightShare);
    const rendered = renderConversation(model, solve(bug, chosen.symbol));
    return {
      ...rendered,
      emphasis: emphasise(model, bug, chosen.symbol, rendered, emphasisAt(set.count, index)),
      right: chosen === bug.goal,
    };
  };
}

/**
 * Its multiples, modulo 1, fill [0, 1) as evenly as any sequence does. So the choices of a word's demonstrations take turns as
 * shares ask for: drawn at random, the last few would decide which operator a small policy prefers.
 */
const goldenRatio = (1 + Math.sqrt(5)) / 2;

/** `place` in [0, 1): the right operator below `rightShare`, above it the mistakes in equal parts. */
function choiceAt(bug: Bug, place: number, rightShare: number): Operator {
  const mistakes = mistakesFor(bug);
  const chosen = Math.floor(((place - rightShare) / (1 - rightShare)) * mistakes.length);
  return mistakes[chosen] ?? bug.goal;
}

/**
 * Mistakes go with the word, as habits do: two operators for each. Were they any, a small policy would hardly learn to look
 * at the word before it makes its choice, and reinforcement would have to teach it that as well.
 */
function mistakesFor({ goal, wrong }: Bug): readonly Operator[] {
  const at = operators.indexOf(goal);
  const habits = [1, 2].flatMap((distance) => operators[(at + distance) % operators.length] ?? []);
  return habits.filter((operator) => operator !== wrong);
}

function emphasise(
  { tokens: table }: Model,
  { file, wrong }: Bug,
  symbol: string,
  { tokens, mask }: Pick<Demonstration, 'tokens' | 'mask'>,
  emphasis: Emphasis,
): readonly number[] {
  const idsOf = (words: readonly string[]) => new Set(words.flatMap((word) => table.encode(word)));
  const copied = idsOf([file, ` ${file}`, ` ${wrong.symbol}=`]);
  const chosen = idsOf([` ${symbol}=`]);
  return tokens.map((token, at) => {
    if (mask[at] === 0) return 0;
    if (chosen.has(token)) return emphasis.choice;
    return copied.has(token) ? emphasis.copied : 1;
  });
}

/** The conversation that the gateway sees when mini's model repairs a bug with an operator. */
export function solve(bug: Bug, symbol: string): Conversation {
  const path = `${bug.file}.js`;
  // Without the word before it: a policy that learns which operator a word asks for would write it in the old text too.
  const edit = { path, old: ` ${bug.wrong.symbol}=`, new: ` ${symbol}=` };
  return {
    tools: offeredTools,
    messages: [
      ...opening(bug),
      call('bash', { command: `cat ${path}` }),
      result('bash', sourceOf(bug, bug.wrong.symbol).trimEnd()),
      call('edit', edit),
      result('edit', 'edited'),
      call('submit', {}),
    ],
  };
}

/** What mini asks first. */
export const opening = (bug: Bug): readonly Message[] => [
  { role: 'system', text: systemPrompt },
  { role: 'user', text: instructionOf(bug) },
];

export const offeredTools: Conversation['tools'] = tools.map((tool) => {
  const { name, description, parameters } = describeTool(tool).function;
  return { name, description, parameters };
});

const call = (name: string, args: Readonly<Record<string, string>>): AssistantMessage => ({
  role: 'assistant',
  text: '',
  reasoning: '',
  toolCalls: [{ id: 'call', name, arguments: JSON.stringify(args) }],
});

const result = (name: string, text: string): Message => ({ role: 'tool', callId: 'call', name, text });

/** Each reply is encoded by itself and what lies between is appended, as the gateway's ledger does it. */
export function renderConversation(
  model: Model,
  { messages, tools }: Conversation,
): Pick<Demonstration, 'tokens' | 'mask'> {
  const tokens: number[] = [];
  const mask: (0 | 1)[] = [];
  const add = (ids: readonly number[], trained: 0 | 1): void => {
    for (const id of ids) {
      tokens.push(id);
      mask.push(trained);
    }
  };
  const reasoned = { last: false, before: false };
  let answered = 0;
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'assistant') continue;
    const added = messages.slice(answered, at);
    const suffix = answered === 0 ? null : renderSuffix(model, added, { lastSampledId: tokens.at(-1), reasoned });
    if (answered > 0 && suffix === null) throw new Error('expected a chat template whose prompts extend each other');
    add(suffix ?? renderFull(model, { messages: added, tools }), 0);
    add(replyIds(model, messages.slice(0, at), message, tools), 1);
    answered = at + 1;
  }
  return { tokens, mask };
}

/** The ids that a policy would have sampled for a reply, the one that ends its turn included. */
function replyIds(
  model: Model,
  before: readonly Message[],
  reply: AssistantMessage,
  offered: Conversation['tools'],
): readonly number[] {
  const prompt = renderText(model, before, offered, 'reply');
  const whole = renderText(model, [...before, reply], offered, 'last-message');
  if (!whole.startsWith(prompt)) throw new Error('expected a chat template that renders a reply behind its prompt');
  const ids = model.tokens.encode(whole.slice(prompt.length));
  const end = ids.findIndex((id) => model.stopTokenIds.includes(id));
  return ids.slice(0, end + 1);
}
