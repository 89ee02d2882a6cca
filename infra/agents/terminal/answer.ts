import { readLenientJson, UnreadableJson } from './lenient-json.ts';

/** Keystrokes, and how long to wait after them. */
export interface Command {
  readonly keystrokes: string;
  readonly waitSec: number;
}

/** A reply of the model that was read as commands. */
export interface Answer {
  readonly commands: readonly Command[];
  /** Whether the model says that the task is done. */
  readonly complete: boolean;
  /** Advice for the next reply. */
  readonly notes: readonly string[];
}

/** A reply that has no commands that could be read, with the reason. */
export interface Problem {
  readonly problem: string;
}

const defaultWaitSec = 1;

/** Names of members that make an object an answer, or a command. */
const completeNames = ['task_complete', 'is_task_complete'] as const;
const waitNames = ['duration', 'timeout_sec', 'duration_sec', 'wait'] as const;

type Members = ReadonlyMap<string, unknown>;

class Wrong extends Error {}

/** Reads a reply as text. The commands may come after reasoning, in a fence, or between explanations. */
export function readAnswer(reply: string): Answer | Problem {
  const closed = reply.indexOf(closeThink);
  const reasoned = /^\s*<think>/.test(reply);
  if (reasoned && closed < 0) return { problem: 'the reply ends inside <think>; close it and answer after it' };
  const said = closed < 0 ? reply : reply.slice(closed + closeThink.length);
  // The tag may also be a part of what the model types.
  const parts = closed >= 0 && /^\s*(?:```\w*\s*)?[{[]/.test(reply) ? [said, reply] : [said];
  try {
    const found = parts.map((part) => readJsonAnswer(part) ?? readTags(part)).find((answer) => answer !== null);
    return found ?? { problem: 'the reply has no JSON object with "commands"' };
  } catch (error) {
    if (error instanceof Wrong) return { problem: error.message };
    throw error;
  }
}

const closeThink = '</think>';

/** The start of an object or of a list of objects. */
const begins = /(?:\[\s*)?\{\s*["'][\w -]+["']\s*:/g;
/** A reply with more objects than this is no answer. */
const mostObjects = 50;

function readJsonAnswer(said: string): Answer | null {
  const calls: Answer[] = [];
  let unreadable = '';
  let next = 0;
  for (const { index } of [...said.matchAll(begins)].slice(0, mostObjects)) {
    if (index < next) continue;
    try {
      const { value, end, repairs } = readLenientJson(said, index);
      next = end;
      const notes = repairs.size === 0 ? [] : [`the JSON was repaired: ${[...repairs].join(', ')}`];
      const found = answerOf(value, notes);
      // A part of an answer that cannot be read as a whole is not carried out.
      if (found?.isPart === true && unreadable !== '') continue;
      if (found?.isCall === false) return calls.length === 0 ? found.answer : joined(calls);
      if (found !== null) calls.push(found.answer);
    } catch (error) {
      if (!(error instanceof UnreadableJson)) throw error;
      unreadable ||= error.message;
    }
  }
  if (calls.length > 0) return joined(calls);
  if (unreadable !== '') throw new Wrong(`the JSON cannot be read: ${unreadable}`);
  return null;
}

interface Found {
  readonly answer: Answer;
  /** Whether the value is a tool call that was written as text. A reply may hold several of them. */
  readonly isCall: boolean;
  /** Whether the value may also be a part of a larger answer. */
  readonly isPart: boolean;
}

/** Returns null for a value that is no answer. */
function answerOf(value: unknown, notes: readonly string[]): Found | null {
  if (Array.isArray(value)) {
    if (!value.some((one) => membersOf(one)?.has('keystrokes'))) return null;
    return { answer: withCommands(readCommands(value), false, notes), isCall: false, isPart: true };
  }
  const members = membersOf(value);
  if (members === null) return null;
  const call = callOf(members, notes);
  if (call !== null) return { answer: call, isCall: true, isPart: false };
  if (members.has('keystrokes')) {
    return { answer: withCommands([readCommand(members, 0)], false, notes), isCall: false, isPart: true };
  }
  const complete = completeNames.some((name) => /^true$/i.test(String(members.get(name))));
  const given = members.get('commands');
  if (given === undefined && !completeNames.some((name) => members.has(name))) return null;
  if (given === undefined && !complete) throw new Wrong('commands: expected a list of commands, got nothing');
  const list = given === undefined || given === null ? [] : Array.isArray(given) ? given : [given];
  return { answer: withCommands(readCommands(list), complete, notes), isCall: false, isPart: false };
}

/** Reads a tool call that was written as text. */
function callOf(members: Members, notes: readonly string[]): Answer | null {
  const name = members.get('name');
  const args = membersOf(members.get('arguments') ?? members.get('parameters') ?? {});
  if (typeof name !== 'string' || args === null) return null;
  if (name === toolNames.complete) return withCommands([], true, notes);
  return name === toolNames.type ? withCommands([readCommand(args, 0)], false, notes) : null;
}

/** The names of the tools by which the model may type and complete the task. */
export const toolNames = { type: 'terminal', complete: 'task_complete' } as const;

function readCommands(list: readonly unknown[]): readonly Command[] {
  return list.map((one, index) => {
    if (typeof one === 'string') return { keystrokes: one, waitSec: defaultWaitSec };
    const members = membersOf(one);
    if (members === null) throw new Wrong(`commands.${index}: expected an object with keystrokes, got ${shown(one)}`);
    return readCommand(members, index);
  });
}

function readCommand(members: Members, index: number): Command {
  const read = commandOf(members);
  if ('problem' in read) throw new Wrong(`commands.${index}.${read.problem}`);
  return read;
}

/** Reads the members of one command. */
export function commandOf(members: Members): Command | Problem {
  const keystrokes = members.get('keystrokes');
  if (typeof keystrokes !== 'string') return { problem: `keystrokes: expected a text, got ${shown(keystrokes)}` };
  const name = waitNames.find((one) => members.has(one));
  // A blocking command may take any time, since a wait ends with the next prompt.
  const blocking = members.get('is_blocking') === true || members.get('blocking') === true;
  const wait = name === undefined ? (blocking ? Number.POSITIVE_INFINITY : defaultWaitSec) : Number(members.get(name));
  if (!(wait >= 0)) return { problem: `${name}: expected a number of seconds, got ${shown(members.get(name ?? ''))}` };
  return { keystrokes: blocking && !/\n$/.test(keystrokes) ? `${keystrokes}\n` : keystrokes, waitSec: wait };
}

function withCommands(commands: readonly Command[], complete: boolean, notes: readonly string[]): Answer {
  const unended = commands.findIndex(
    ({ keystrokes }, index) => /^\w+ .*[^\n\r]$/.test(keystrokes) && index < commands.length - 1,
  );
  const advice = `commands.${unended}: the keystrokes do not end with a line break, so that those after them went into the same line`;
  return { commands, complete, notes: unended < 0 ? notes : [...notes, advice] };
}

function joined(calls: readonly Answer[]): Answer {
  return {
    commands: calls.flatMap(({ commands }) => commands),
    complete: calls.some(({ complete }) => complete),
    notes: calls.flatMap(({ notes }) => notes),
  };
}

const closeKeystrokes = '</keystrokes>';

/** Reads the same answer as tags, another form that models are trained on. */
function readTags(said: string): Answer | null {
  // After the last end, each start would be searched for an end through the rest of the text, in quadratic time.
  const ended = said.slice(0, Math.max(0, said.lastIndexOf(closeKeystrokes)) + closeKeystrokes.length);
  const found = [
    ...ended.matchAll(/<keystrokes(?:\s+duration\s*=\s*["']?([\d.]+)["']?)?\s*>([\s\S]*?)<\/keystrokes>/g),
  ];
  const complete = /<task_complete>\s*true\s*<\/task_complete>/i.test(said);
  if (found.length === 0 && !complete) return null;
  const commands = found.map(([, wait, keystrokes = '']) => ({
    keystrokes,
    waitSec: wait === undefined ? defaultWaitSec : Number(wait) || 0,
  }));
  return withCommands(commands, complete, []);
}

const membersOf = (value: unknown): Members | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? new Map(Object.entries(value)) : null;

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 100);
