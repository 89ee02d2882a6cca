import assert from 'node:assert/strict';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { type Prompt, promptOf } from '../../../../infra/engine/prompt.ts';
import { createPromptCache } from '../../../../infra/gateway/branches/prompt-cache.ts';
import { checkTurns } from '../../../../infra/gateway/branches/token-check.ts';
import type { TurnRecord } from '../../../../infra/gateway/branches/turn-record.ts';

const ids = fc.array(fc.nat(200_000), { maxLength: 4 });
/** `from`: how many turns back its parent is; before the first one it begins a branch. */
const grown = fc.array(fc.record({ from: fc.nat(8), newIds: ids, sampledIds: ids }), { maxLength: 30 });

const blank: Omit<TurnRecord, 'index' | 'parent' | 'promptIds' | 'promptLength' | 'promptChecksum' | 'sampledIds'> = {
  requestKey: '',
  logprobs: [],
  versions: [],
  startedAt: 0,
  endedAt: 0,
  context: '',
  conversation: '',
  messages: [],
  faultyCalls: [],
  offersTools: false,
  finishReason: 'stop',
  reply: { role: 'assistant', text: '', reasoning: '', toolCalls: [] },
};

const textOf = ({ chunks }: Prompt): string => Buffer.concat(chunks).toString();

it('a prompt equals its branch as the engine receives it, whichever prompts are still cached', () => {
  fc.assert(
    fc.property(grown, (steps) => {
      const turns: TurnRecord[] = [];
      const whole: number[][] = [];
      const prompts = createPromptCache(turns);
      for (const { from, newIds, sampledIds } of steps) {
        const parent = turns[turns.length - 1 - from];
        const prompt = parent === undefined ? promptOf(newIds) : prompts.after(parent, newIds);
        const expected = [...(whole[parent?.index ?? -1] ?? []), ...newIds];
        assert.deepEqual([prompt.length, textOf(prompt)], [expected.length, expected.join(',')]);
        const turn: TurnRecord = {
          ...blank,
          index: turns.length,
          parent: parent?.index ?? null,
          promptIds: newIds,
          sampledIds,
          promptLength: expected.length,
          promptChecksum: crc32(textOf(prompt)),
        };
        turns.push(turn);
        whole.push([...expected, ...sampledIds]);
        prompts.keep(turn, prompt);
        const { chunks } = prompt;
        assert.ok(chunks.every(({ length }, at) => length > 2 * (chunks[at + 1]?.length ?? 0)));
      }
      const mismatched = [...checkTurns(turns).masked.values()].filter((reason) => reason === 'prompt-mismatch');
      assert.deepEqual(mismatched, []);
    }),
  );
});
