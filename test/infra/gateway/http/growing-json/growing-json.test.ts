import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createGrowingJson } from '../../../../../infra/gateway/http/growing-json/index.ts';
import { countValues } from '../../../../../infra/gateway/http/growing-json/values.ts';
import { limits } from '../../../../../infra/gateway/limits.ts';

const valueOrError = (parse: () => unknown): unknown => {
  try {
    return parse();
  } catch (error) {
    return error instanceof SyntaxError ? `not JSON: ${error.message}` : error;
  }
};

/** Cuts a text into pieces of a length that depends on it, as a body may arrive. */
function piecesOf(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  const length = 1 + (bytes.length % 97);
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, index) =>
    bytes.subarray(index * length, (index + 1) * length),
  );
}

/** Parses texts one after the other, and checks that each value is that of JSON.parse. Returns the lists under `messages`. */
function listsOf(...texts: readonly string[]): unknown[][] {
  const parse = createGrowingJson('messages');
  return texts.map((text) => {
    const value = valueOrError(() => {
      const parsed = parse(piecesOf(text));
      assert.equal(parsed.values, countValues(parsed.value, limits.bodyValues), text);
      return parsed.value;
    });
    assert.deepEqual(
      value,
      valueOrError(() => JSON.parse(text)),
      text,
    );
    return (value as { messages: unknown[] } | null)?.messages ?? [];
  });
}

const body = (messages: readonly unknown[], more: object = {}): string =>
  JSON.stringify({ model: 'policy', messages, stream: true, ...more });
const message = (text: string) => ({ role: 'user', content: text });

const text = fc
  .array(fc.constantFrom('"', '\\', '\\"', '[', ']', '{', '}', ',', ':', 'é', '🙂', '\n', ' ', 'messages'), {
    maxLength: 6,
  })
  .map((pieces) => pieces.join(''));
const item = fc.oneof(
  text.map(message),
  fc.record({ role: text, content: fc.array(fc.record({ text, deep: fc.array(fc.nat(99), { maxLength: 2 }) })) }),
  fc.constantFrom<unknown>('text', 7, 70, null, true, [], {}, [[1], 2]),
);
/** A body whose list has some items of the one before and then others, and which may be cut short. */
const step = fc.record({
  kept: fc.oneof({ weight: 3, arbitrary: fc.constant(100) }, { weight: 1, arbitrary: fc.nat(12) }),
  added: fc.array(item, { maxLength: 3 }),
  more: fc.oneof(fc.constant({}), fc.dictionary(text, item, { maxKeys: 2 })),
  indent: fc.constantFrom(0, 0, 0, 1),
  cut: fc.constantFrom(0, 0, 0, 0, 1, 5),
});

describe('the parser of growing bodies', () => {
  it('returns the very objects of the earlier body for the items that it begins with', () => {
    const [one, two, three] = ['a', 'b "quoted" \\" [,] é', 'c'].map(message);
    const [first = [], second = []] = listsOf(body([one, two]), body([one, two, three], { tools: [1, 2] }));
    assert.equal(second[0], first[0]);
    assert.equal(second[1], first[1]);
    assert.equal(second.length, 3);
  });

  it('parses what differs again, be it an item in the middle or everything before the list', () => {
    const items = ['a', 'b', 'c', 'd', 'e', 'f'].map(message);
    const changed = items.with(4, message('changed'));
    const [first = [], second = [], third = []] = listsOf(body(items), body([...changed, message('g')]), body(changed));
    assert.equal(second[3], first[3]);
    assert.notEqual(second[4], first[4]);
    assert.equal(third[4], second[4]);
    listsOf(body(items), body(items, { model: 'other' }), body(items.slice(0, 5)), body(items.slice(0, 1)), body([]));
  });

  it('keeps the bodies of several conversations', () => {
    const of = (name: string, turns: number): string =>
      body(Array.from({ length: turns }, (_, turn) => message(`${name} ${turn}`)));
    const [main = [], , , again = []] = listsOf(of('main', 5), of('sub', 5), of('sub', 7), of('main', 6), of('sub', 8));
    assert.equal(again[4], main[4]);
  });

  it('is not misled by texts that only look like a continuation', () => {
    const known = '{"messages":[{"a":[1,"]"]},12]}';
    const texts = [
      '{"messages":[{"a":[1,"]"]},123]}',
      '{"messages":[{"a":[1,"]"]},12e1,5]}',
      '{"messages":[{"a":[1,"]"]},12,]}',
      '{"messages":[{"a":[1,"]"]},12 , 13 ] }',
      '{"messages":[{"a":[1,"]"]},12],"messages":[1,2]}',
      '{"messages":[{"a":[1,"]"]},12],"mess\\u0061ges":[{"a":[1,"]"]},12]}',
      '{"messages":[{"a":[1,"]"]},12],"messages":"none"}',
      '{"messages":[{"a":[1,"]"]},12],"more":{"messages":[7]}}',
      '{"messages":[{"a":[1,"]"]},12],"__proto__":{"x":1}}',
      '{"messages":[{"a":[1,"]"]},12]}}',
      '{"messages":[{"a":[1,"]"]},12',
      '{"messages":[{"a":[1,"]"]},12,"\\"',
    ];
    for (const text of texts) listsOf(known, text, known, text);
    for (const text of [
      '{"messages":[1],"messages":[2]}',
      '{"a":{"messages":[1]},"messages":{"b":[1]}}',
      '[[1],[2]]',
    ]) {
      listsOf(text, text, text);
    }
  });

  it('parses every step of a conversation as JSON.parse does, whatever is in it', () => {
    const property = fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let items: readonly unknown[] = [];
      const texts = steps.map(({ kept, added, more, indent, cut }) => {
        items = [...items.slice(0, kept), ...added];
        const whole = JSON.stringify({ model: 'policy', messages: items, ...more }, null, indent);
        return whole.slice(0, whole.length - cut);
      });
      listsOf(...texts);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it('does not keep a body that is larger than the limit', () => {
    const long = message('x'.repeat(limits.keptBodyBytes));
    const [first = [], second = []] = listsOf(body([long]), body([long, message('a')]));
    assert.notEqual(second[0], first[0]);
    const [, grown = [], after = []] = listsOf(
      body([message('a')]),
      body([message('a'), long]),
      body([message('a'), long]),
    );
    assert.notEqual(after[0], grown[0]);
  });
});

describe('the number of values of a body', () => {
  it('counts every array, object and scalar', () => {
    assert.equal(countValues({ a: [1, 2, { b: null }], c: 'text' }, 100), 7);
    assert.equal(countValues('text', 1), 1);
  });

  it('is counted no further than to the first value too many', () => {
    assert.equal(countValues({ a: [1, 2, { b: null }], c: 'text' }, 6), 7);
    assert.equal(
      countValues(
        Array.from({ length: 1_000_000 }, () => [1]),
        10,
      ),
      11,
    );
  });
});
