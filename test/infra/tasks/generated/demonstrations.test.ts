import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadModel } from '../../../../infra/kits/chat-tokens/index.ts';
import { operators } from '../../../../infra/tasks/generated/bug.ts';
import { createDemonstrations, type Demonstration } from '../../../../infra/tasks/generated/demonstrations.ts';

const model = await loadModel(join(import.meta.dirname, '../../../../infra/tasks/generated/temper-tiny'));
const count = 240;

describe('createDemonstrations', () => {
  const demonstrate = createDemonstrations({ model, tasks: 'generated:train/7', seed: 7, rightShare: 0.25 });
  const all = Array.from({ length: count }, (_, index) => demonstrate(index));

  it('gives the same demonstrations for the same seed', () => {
    const again = createDemonstrations({ model, tasks: 'generated:train/7', seed: 7, rightShare: 0.25 });
    assert.deepEqual(again(3), all[3]);
  });

  it('weights only tokens of the policy', () => {
    for (const { tokens, mask, emphasis } of all) {
      assert.deepEqual([mask.length, emphasis.length], [tokens.length, tokens.length]);
      assert.ok(mask.every((one, at) => (emphasis[at] ?? 0) > 0 === (one === 1)));
    }
  });

  it('chooses rightly in the requested share, evenly for each word', () => {
    for (const one of all) assert.equal(partsOf(one).chosen === partsOf(one).asked, one.right);
    const ofWord = Map.groupBy(all, (one) => partsOf(one).asked);
    assert.equal(ofWord.size, operators.length);
    for (const [asked, ones] of ofWord) {
      for (let from = 0; from + 20 <= ones.length; from += 1) {
        const right = ones.slice(from, from + 20).filter((one) => one.right).length;
        assert.ok(Math.abs(right - 5) <= 1, `${asked}: expected about 5 of 20 from ${from} on, got ${right}`);
      }
    }
  });

  it('alternates the choices for each task of a finite set', () => {
    const few = createDemonstrations({ model, tasks: 'generated:train/7?count=2', seed: 7, rightShare: 0.5 });
    const right = Array.from({ length: 40 }, (_, index) => few(index).right);
    for (const task of [0, 1]) {
      const count = right.filter((one, index) => one && index % 2 === task).length;
      assert.ok(Math.abs(count - 10) <= 1, `task ${task}: expected about 10 of 20, got ${count}`);
    }
  });

  it('makes two mistakes per word, never with the operator in the file', () => {
    const mistakes = new Map<string, Set<string>>();
    for (const one of all.filter(({ right }) => !right)) {
      const { asked, there, chosen } = partsOf(one);
      assert.notEqual(chosen, there);
      mistakes.set(asked, (mistakes.get(asked) ?? new Set()).add(chosen));
    }
    assert.equal(mistakes.size, operators.length);
    for (const [asked, made] of mistakes) assert.equal(made.size, 2, `${asked}: ${[...made]}`);
  });
});

/** The operators of a demonstration: the requested one, the one in the file, and the chosen one. */
function partsOf({ tokens }: Demonstration) {
  const text = model.tokens.decode([...tokens]);
  const word = /must return the (\w+)/.exec(text)?.[1];
  const edit = /"old": " (\S+)=", "new": " (\S+)="/.exec(text);
  const asked = operators.find((operator) => operator.word === word)?.symbol;
  assert.ok(asked !== undefined && edit?.[1] !== undefined && edit[2] !== undefined, `expected an edit in ${text}`);
  return { asked, there: edit[1], chosen: edit[2] };
}
