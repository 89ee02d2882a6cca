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
import { createRandom } from '../../random.ts';
import { parseSetAddress } from '../address.ts';
import { type Bug, bugAt, type Operator, operators, sourceOf } from './bug.ts';
import { instructionOf } from './generate.ts';

/** A rollout of mini as a supervised example, with the token ids that the gateway's ledger would hold. */
export interface Demonstration {
  readonly tokens: readonly number[];
  /** 1 for a token of the policy, else 0. */
  readonly mask: readonly (0 | 1)[];
  /** The weight of each token in the warm-up's loss: 0 for tokens that are not the policy's. */
  readonly emphasis: readonly number[];
  /** Whether the rollout chooses the operator that the task asks for. */
  readonly right: boolean;
}

export interface DemonstrationOptions {
  readonly model: Model;
  /** The address of a generated set. Other sets have no demonstrations. */
  readonly tasks: string;
  readonly seed: number;
  /** The share of demonstrations with the right choice. The others make one of the mistakes that belong to the task's word. */
  readonly rightShare: number;
}

/** The first index of an endless set's demonstrations, beyond those of training tasks. A finite set uses its own tasks. */
const firstNumber = 1_000_000_000;

/** The number of examples in which a policy first learns to copy. */
const earlyExamples = 1600;

interface Emphasis {
  readonly copied: number;
  readonly choice: number;
}

/**
 * The weights of tokens that are copied and of the chosen operator; all others have weight 1. A small policy learns the
 * syntax quickly, but copying from file and instruction takes long. Choices have a low weight until it can copy: while it
 * cannot distinguish the two texts of an edit, they would disturb that. A finite set is memorised, with equal weights.
 */
function emphasisAt(tasks: number | null, index: number): Emphasis {
  if (tasks !== null) return { copied: 1, choice: 1 };
  return { copied: 15, choice: index < earlyExamples ? 1 : 10 };
}

/** Creates a function from an index to a demonstration. Throws TemperFailure InvalidInput when the set is not generated. */
export function createDemonstrations(options: DemonstrationOptions): (index: number) => Demonstration {
  const { model, tasks, seed, rightShare } = options;
  const set = parseSetAddress(tasks);
  if (set.kind !== 'generated') {
    throw new TemperFailure(
      'InvalidInput',
      `warmUp: expected a generated task set, since others have no demonstrations, got ${tasks}`,
    );
  }
  const first = createRandom(`demonstration/${seed}`).unit();
  // The choices alternate per word in an endless set, and per task in a finite one.
  const period = set.count ?? operators.length;
  return (index) => {
    const bug = bugAt(set.split, set.seed, set.count === null ? firstNumber + index : index % set.count);
    const turn = Math.floor(index / period) + operators.indexOf(bug.goal);
    const chosen = choiceAt(bug, (first + turn * goldenRatio) % 1, rightShare);
    const rendered = renderConversation(model, solve(bug, chosen.symbol));
    return {
      ...rendered,
      emphasis: emphasise(model, rendered, { bug, symbol: chosen.symbol, emphasis: emphasisAt(set.count, index) }),
      right: chosen === bug.goal,
    };
  };
}

/**
 * The multiples of this number, modulo 1, fill [0, 1) evenly, so that the choices for a word follow the shares closely at every
 * moment. With random choices, the last few would decide which operator a small policy prefers.
 */
const goldenRatio = (1 + Math.sqrt(5)) / 2;

/** Chooses an operator for a value in [0, 1): the right one below `rightShare`, and above it the mistakes in equal parts. */
function choiceAt(bug: Bug, value: number, rightShare: number): Operator {
  const mistakes = mistakesFor(bug);
  const chosen = Math.floor(((value - rightShare) / (1 - rightShare)) * mistakes.length);
  return mistakes[chosen] ?? bug.goal;
}

/**
 * The two wrong operators that belong to a word. If any operator could be the mistake, a small policy would hardly learn that
 * its choice depends on the word, and reinforcement learning would have to teach that as well.
 */
function mistakesFor({ goal, wrong }: Bug): readonly Operator[] {
  const at = operators.indexOf(goal);
  const mistakes = [1, 2].flatMap((distance) => operators[(at + distance) % operators.length] ?? []);
  return mistakes.filter((operator) => operator !== wrong);
}

interface EmphasisedEdit {
  readonly bug: Bug;
  /** The operator that the demonstration chooses. */
  readonly symbol: string;
  readonly emphasis: Emphasis;
}

/** The weight of each token of a demonstration. */
function emphasise(
  { tokens: table }: Model,
  { tokens, mask }: Pick<Demonstration, 'tokens' | 'mask'>,
  { bug, symbol, emphasis }: EmphasisedEdit,
): readonly number[] {
  const idsOf = (words: readonly string[]) => new Set(words.flatMap((word) => table.encode(word)));
  const copied = idsOf([bug.file, ` ${bug.file}`, ` ${bug.wrong.symbol}=`]);
  const chosen = idsOf([` ${symbol}=`]);
  return tokens.map((token, at) => {
    if (mask[at] === 0) return 0;
    if (chosen.has(token)) return emphasis.choice;
    return copied.has(token) ? emphasis.copied : 1;
  });
}

/** The conversation that the gateway receives when mini's model replaces the operator of a bug. */
export function solve(bug: Bug, symbol: string): Conversation {
  const path = `${bug.file}.js`;
  // The old text omits the word before the operator: a policy that knows the word's operator would write that instead.
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

/** The messages of mini's first request. */
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

/** Encodes a conversation as the gateway's ledger does: each reply alone, and the text between replies as a suffix. */
function renderConversation(model: Model, { messages, tools }: Conversation): Pick<Demonstration, 'tokens' | 'mask'> {
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

/** The ids that a policy would have sampled for a reply, including the stop token. */
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
