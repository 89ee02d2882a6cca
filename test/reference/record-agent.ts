import { loadModel } from '../../infra/kits/chat-tokens/index.ts';
import type { Config } from '../../infra/settings/config.ts';
import { type Bug, bugAt, operators, sourceOf } from '../../infra/tasks/generated/bug.ts';
import { startSession } from '../../workers/cli/stack/stack-session.ts';
import { print } from '../../workers/cli/text/output.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutRequest, RolloutResult } from '../../workflows/contracts/rollout.ts';
import { startScriptedVllm } from '../helpers/engine/scripted-vllm.ts';

/** The tool calls of a model for one agent. */
export interface ToolCalls {
  read(file: string): object;
  edit(file: string, before: string, after: string): object;
}

/**
 * Records an agent's own prompts, with the replies that the model is to learn: rollouts of the unmodified agent through a whole
 * stack, with a script in place of the policy, one for each operator. Returns the digests of their traces, the right one
 * first.
 */
export async function recordAgent(
  calls: ToolCalls,
  configWith: (settings: Record<string, string>) => Config,
  settings: RolloutRequest,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const bug = bugAt('train', 1, 0);
  let symbol = '';
  const vllm = await startScriptedVllm(async (promptIds) => {
    const { tokens } = await model;
    const answered = promptIds.filter((id) => id === tokens.idOf('<tool_response>')).length;
    return tokens.encode(`${replyOf(calls, bug, symbol, answered)}<|im_end|>`);
  });
  const config = configWith({ TEMPER_ENGINE_URLS: vllm.url, TEMPER_ENGINE_MODEL: 'policy', TEMPER_PUBLISH: 'reload' });
  const model = loadModel(config.modelDir);
  try {
    const session = await startSession(config, signal);
    try {
      const traces: string[] = [];
      for (const chosen of choicesOf(bug)) {
        symbol = chosen;
        const result: RolloutResult = await session.client.workflow.execute('rollout', {
          taskQueue: controlQueue,
          workflowId: `recorded-${traces.length}`,
          args: [settings],
        });
        const expected = chosen === bug.goal.symbol ? 1 : 0;
        if (result.trace === null || result.outcome !== 'scored' || result.reward !== expected) {
          throw new Error(`expected the recorded rollout to score ${expected}, got ${JSON.stringify(result)}`);
        }
        print(`recorded ${settings.agent} with ${chosen}=: ${result.trace.turns} turns, reward ${result.reward}`);
        traces.push(result.trace.trace.digest);
      }
      return traces;
    } finally {
      await session.close();
    }
  } finally {
    await vllm.close();
  }
}

/** Returns the right operator, and a wrong one. */
function choicesOf({ goal, wrong }: Bug): readonly string[] {
  const others = operators.filter((operator) => operator !== goal && operator !== wrong);
  return [goal.symbol, ...others.slice(0, 1).map((operator) => operator.symbol)];
}

function replyOf(calls: ToolCalls, bug: Bug, symbol: string, answered: number): string {
  const file = `${bug.file}.js`;
  const line =
    sourceOf(bug, bug.wrong.symbol)
      .split('\n')
      .find((text) => text.includes(`${bug.wrong.symbol}=`)) ?? '';
  const before = line.trim();
  if (answered === 0) return callOf(calls.read(file));
  if (answered === 1) return callOf(calls.edit(file, before, before.replace(`${bug.wrong.symbol}=`, `${symbol}=`)));
  return 'Done.';
}

const callOf = (call: object): string => `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
