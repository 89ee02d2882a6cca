import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readEnvFile } from '../../../infra/compose/env-file.ts';

const read = (text: string, isRaw = false) =>
  readEnvFile(text, { variables: {}, isRaw, refuse: (expected, got) => new Error(`expected ${expected}, got ${got}`) });

const doubled = Array.from({ length: 60 }, (_, index) => `A${index + 1}=$A${index}$A${index}\n`).join('');
const refused: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  [
    'more variables than a task needs',
    Array.from({ length: 2_001 }, (_, index) => `A${index}=\n`).join(''),
    /expected at most 2000 variables, got another one in line 2001$/,
  ],
  [
    'variables that grow without end',
    `A0=0123456789\n${doubled}`,
    /expected a text of at most 262144 characters in A15, got variables that make it longer in line 16$/,
  ],
  ['a quote that is never closed', 'A=1\nB="two\n', /expected a closing quote of B, got none in line 2$/],
  ['a name with a space', 'export A B=1\n', /expected = after A, got something else in line 1$/],
  ['a line without a name', '# a\n=1\n', /expected lines such as NAME=value, got another one in line 2$/],
];
for (const [what, text, message] of refused) {
  it(`refuses ${what}, by the line and without the value`, () => {
    assert.throws(() => read(text), { message });
  });
}

it('takes a name alone as the variable of the host, and reads both signs and all ends of lines', () => {
  const host = { name: 'HOME', fallback: undefined };
  assert.deepEqual(read('HOME\r\nA: 1\r\nB =\t2\r\n'), [
    ['HOME', host],
    ['A', '1'],
    ['B', '2'],
  ]);
  assert.deepEqual(read('HOME\n A=$B # c \n', true), [
    ['HOME', host],
    ['A', '$B # c '],
  ]);
});
