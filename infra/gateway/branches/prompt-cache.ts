import { pathTo } from '../../../workflows/algorithms/turns.ts';
import { extend, type Prompt, promptOf } from '../../engine/prompt.ts';
import type { TurnRecord } from './turn-record.ts';

/** The prompts of the turns that branches continue from. The newest few are kept; any other is assembled again. */
export interface PromptCache {
  /** Returns everything that the engine received and sampled up to the end of a turn, and then the new ids. */
  after(turn: TurnRecord, newIds: readonly number[]): Prompt;
  keep(turn: TurnRecord, prompt: Prompt): void;
}

/** The number of branches whose prompts are kept: enough for an agent and the sub-agents that it runs at the same time. */
const keptBranches = 4;

export function createPromptCache(turns: readonly TurnRecord[]): PromptCache {
  const kept = new Map<number, Prompt>();
  return {
    after(turn, newIds) {
      const prompt = kept.get(turn.index);
      if (prompt !== undefined) return extend(prompt, turn.sampledIds, newIds);
      const path = pathTo(turns, turn);
      return promptOf(...path.flatMap(({ promptIds, sampledIds }) => [promptIds, sampledIds]), newIds);
    },
    keep(turn, prompt) {
      // The parent's branch continues from the new turn.
      kept.delete(turn.parent ?? -1);
      kept.set(turn.index, prompt);
      const [oldest] = kept.keys();
      if (kept.size > keptBranches && oldest !== undefined) kept.delete(oldest);
    },
  };
}
