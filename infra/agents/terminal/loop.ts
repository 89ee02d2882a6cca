import { exitCodeOf, exits } from '../mini/exits.ts';
import type { AssistantMessage, Message, Model } from '../mini/model.ts';
import { callTool, type Tool } from '../mini/tools.ts';
import { readAnswer } from './answer.ts';
import { textPrompt, textReminder, toolPrompt, toolReminder } from './prompt.ts';
import type { Desk } from './tools.ts';

/** One run of the loop: show the terminal, ask the model and type what it says, until its task is complete or a limit is reached. */
export interface Work {
  readonly instruction: string;
  readonly model: Model;
  /** All tools that the model may call, including those that the request does not offer. */
  readonly tools: readonly Tool[];
  readonly desk: Desk;
  /** Whether the model is asked for commands as text. */
  readonly asText: boolean;
  readonly maxTurns: number;
  /** Writes one line to the agent's log. */
  readonly log: (line: string) => void;
}

/** Consecutive replies without anything to do that end the run. */
const maxIdleReplies = 5;

/** Runs the loop and returns the agent's exit code. */
export const work = (task: Work): Promise<number> => exitCodeOf(converse(task), task.log);

async function converse(task: Work): Promise<number> {
  const messages: Message[] = [
    { role: 'system', content: task.asText ? textPrompt : toolPrompt },
    { role: 'user', content: `${task.instruction.trim()}\n\nThe terminal:\n${task.desk.show()}` },
  ];
  let idle = 0;
  for (let turn = 0; turn < task.maxTurns; turn += 1) {
    const reply = await task.model.reply(messages);
    messages.push(reply);
    task.log(`assistant: ${JSON.stringify({ content: reply.content, tool_calls: reply.tool_calls })}`);
    const { answers, done } = reply.tool_calls === undefined ? await obeyText(task, reply) : await callAll(task, reply);
    if (done === 'complete') return exits.submitted;
    for (const { content } of answers) task.log(`terminal: ${JSON.stringify(content)}`);
    messages.push(...answers);
    idle = done === 'something' ? 0 : idle + 1;
    if (idle >= maxIdleReplies) return exits.exited;
  }
  return exits.turnLimit;
}

/** The result of a reply: the messages to the model, and what was done. */
interface Obeyed {
  readonly answers: readonly Message[];
  readonly done: 'nothing' | 'something' | 'complete';
}

/** Reads commands from a reply without tool calls and types them. */
async function obeyText({ desk, asText }: Work, { content }: AssistantMessage): Promise<Obeyed> {
  const tell = (text: string): readonly Message[] => [{ role: 'user', content: text }];
  const answer = readAnswer(content ?? '');
  if ('problem' in answer) {
    return { answers: tell(`error: ${answer.problem}\n${asText ? textReminder : toolReminder}`), done: 'nothing' };
  }
  if (!answer.complete) desk.resume();
  await desk.type(answer.commands);
  const seen = answer.complete ? await desk.complete() : desk.show();
  if (seen === null) return { answers: [], done: 'complete' };
  const notes = answer.notes.map((note) => `note: ${note}\n`).join('');
  return { answers: tell(`${notes}${seen}`), done: 'something' };
}

/** Runs all tool calls of a reply, up to one that completes the task. */
async function callAll({ tools }: Work, { tool_calls: calls = [] }: AssistantMessage): Promise<Obeyed> {
  const answers: Message[] = [];
  for (const call of calls) {
    const content = await callTool(tools, call.function, undefined);
    if (content === null) return { answers, done: 'complete' };
    answers.push({ role: 'tool', tool_call_id: call.id, content });
  }
  return { answers, done: 'something' };
}
