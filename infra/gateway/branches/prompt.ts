import { pathTo } from '../../../workflows/algorithms/turns.ts';
import { extend, type Prompt, promptOf } from '../../engine/prompt.ts';
import type { TurnRecord } from './turn-record.ts';

/** The prompts of the turns that branches go on from: the newest few are kept, any other is put together again. */
export interface Prompts {
  /** What the engine saw and sampled up to the end of a turn, and these new ids. */
  after(turn: TurnRecord, newIds: readonly number[]): Prompt;
  keep(turn: TurnRecord, prompt: Prompt): void;
}

/** An agent and the sub-agents that it runs at once. */
const keptBranches = 4;

export function createPrompts(turns: readonly TurnRecord[]): Prompts {
  const kept = new Map<number, Prompt>();
  return {
    after(turn, newIds) {
      const prompt = kept.get(turn.index);
      if (prompt !== undefined) return extend(prompt, turn.sampledIds, newIds);
      const path = pathTo(turns, turn);
      return promptOf(...path.flatMap(({ promptIds, sampledIds }) => [promptIds, sampledIds]), newIds);
    },
    keep(turn, prompt) {
      // Its branch goes on from the new turn.
      kept.delete(turn.parent ?? -1);
      kept.set(turn.index, prompt);
      const [oldest] = kept.keys();
      if (kept.size > keptBranches && oldest !== undefined) kept.delete(oldest);
    },
  };
}
