import type { Workspace } from './bash.ts';
import { exitCodeOf, exits } from './exits.ts';
import type { AssistantMessage, Message, Model } from './model.ts';
import { reminder, systemPrompt } from './prompt.ts';
import { callTool, type Tool } from './tools.ts';

/** One run of the loop: ask the model and run the tools it calls, until it submits or reaches a limit. */
export interface Work {
  readonly instruction: string;
  readonly model: Model;
  readonly tools: readonly Tool<Workspace>[];
  readonly workspace: Workspace;
  readonly maxTurns: number;
  /** Writes one line to the agent's log. */
  readonly log: (line: string) => void;
}

/** Consecutive replies without a tool call that end the run. */
const maxIdleReplies = 2;

/** Runs the loop and returns mini's exit code. */
export const work = (task: Work): Promise<number> => exitCodeOf(converse(task), task.log);

async function converse(task: Work): Promise<number> {
  const messages: Message[] = [
    { role: 'system', content: systemPrompt },
    { role: 'user', content: task.instruction.trim() },
  ];
  let idle = 0;
  for (let turn = 0; turn < task.maxTurns; turn += 1) {
    const reply = await task.model.reply(messages);
    messages.push(reply);
    task.log(`assistant: ${JSON.stringify({ content: reply.content, tool_calls: reply.tool_calls })}`);
    if (reply.tool_calls === undefined) {
      idle += 1;
      if (idle >= maxIdleReplies) return exits.exited;
      messages.push({ role: 'user', content: reminder });
      continue;
    }
    idle = 0;
    if (await callAll(task, reply, messages)) return exits.submitted;
  }
  return exits.turnLimit;
}

/** Runs all tool calls of a reply. Returns whether one of them submitted the work. */
async function callAll(
  task: Work,
  { tool_calls: calls = [] }: AssistantMessage,
  messages: Message[],
): Promise<boolean> {
  for (const call of calls) {
    const answer = await callTool(task.tools, call.function, task.workspace);
    if (answer === null) return true;
    task.log(`tool: ${JSON.stringify(answer)}`);
    messages.push({ role: 'tool', tool_call_id: call.id, content: answer });
  }
  return false;
}
