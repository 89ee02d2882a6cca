import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type EchoDifference, isEchoOf, withoutBlanks } from '../../../../infra/gateway/branches/echo.ts';
import { createTokenLedger, type Plan } from '../../../../infra/gateway/branches/token-ledger.ts';
import {
  type AssistantMessage,
  loadModel,
  type Message,
  type Model,
} from '../../../../infra/kits/chat-tokens/index.ts';
import { idsOf } from '../../../helpers/engine/prompt-ids.ts';
import {
  call,
  createConversation,
  finishTurn,
  reply,
  result,
  tools,
  user,
} from '../../../helpers/gateway/conversation.ts';
import { type TinyModel, writeTinyModel } from '../../../helpers/models/tiny-model.ts';
import { userSeconds } from '../../../helpers/user-seconds.ts';

let dir: TinyModel;
let model: Model;
before(async () => {
  dir = await writeTinyModel();
  model = await loadModel(dir.dir);
});
after(() => dir[Symbol.asyncDispose]());

const asked = user('Go.');
const edit = call('call_1', 'bash', { path: 'a.py', text: 'x = 1  \ny = 2\n', count: 1 });
const said: AssistantMessage = { ...reply('I edit.\n\n  Now.  \n', edit), reasoning: 'hm' };
const exact = { ...said };

/** Plans the request that follows when a client echoes the reply in this form. */
function follow(echo: AssistantMessage, sampled = said, before: readonly Message[] = [asked]): Plan {
  const ledger = createTokenLedger(model);
  finishTurn(ledger, ledger.plan({ messages: [asked], tools }), sampled, [65, 258]);
  return ledger.plan({ messages: [...before, echo, result('call_1', 'ok')], tools });
}

const withArguments = (args: string, id = 'call_1'): AssistantMessage => ({
  ...said,
  toolCalls: [{ id, name: 'bash', arguments: args }],
});

describe('an echo of a reply', () => {
  const members = { count: 1, text: 'x = 1  \ny = 2\n', path: 'a.py' };
  const tolerated: readonly (readonly [string, AssistantMessage, readonly EchoDifference[]])[] = [
    ['that is exact', exact, []],
    ['without reasoning', { ...said, reasoning: '' }, ['reasoning']],
    ['trimmed', { ...said, text: 'I edit.\n\n  Now.' }, ['text']],
    ['without blanks at the ends of lines', { ...said, text: 'I edit.\n  Now.' }, ['text']],
    ['without the text beside a call', { ...said, text: '' }, ['text']],
    ['with reformatted arguments', withArguments(JSON.stringify(members, null, 1)), ['arguments']],
    ['with a call id of its own', withArguments(edit.arguments, 'toolu_1'), ['call-ids']],
    ['with a default filled in', withArguments(JSON.stringify({ ...members, all: false })), ['arguments']],
    ['with an unknown argument left out', withArguments('{"path":"a.py","count":1}'), ['arguments']],
    ['with trimmed lines', withArguments(JSON.stringify({ ...members, text: 'x = 1\ny = 2' })), ['arguments']],
  ];
  for (const [how, echo, differences] of tolerated) {
    it(`${how} continues the same turn, and its differences are counted`, () => {
      const { parent, echo: counted } = follow(echo);
      assert.deepEqual([parent, counted], [0, differences]);
    });
  }

  it('continues the same turn by its call id when the arguments were not JSON', () => {
    const broken = withArguments('{"path": ');
    assert.equal(follow(withArguments('{}'), broken).parent, 0);
    assert.equal(follow(withArguments('{}', 'other'), broken).parent, null);
  });

  const unrelated: readonly (readonly [string, AssistantMessage])[] = [
    ['with other text', { ...said, text: 'I edited. Now.' }],
    ['with another value', withArguments(JSON.stringify({ ...members, count: 2 }))],
    ['with indented lines', withArguments(JSON.stringify({ ...members, text: 'x = 1\n  y = 2' }))],
    ['with a default, under another id', withArguments(JSON.stringify({ ...members, all: false }), 'toolu_1')],
    ['of another tool', { ...said, toolCalls: [{ ...edit, name: 'python' }] }],
    ['without its call', { ...said, toolCalls: [] }],
    ['with one call more', { ...said, toolCalls: [edit, edit] }],
  ];
  for (const [how, echo] of unrelated) {
    it(`${how} continues no turn`, () => {
      const { parent, echo: counted } = follow(echo);
      assert.deepEqual([parent, counted], [null, []]);
    });
  }

  it('after another request continues no turn, whatever its ids are', () => {
    const filled = withArguments(JSON.stringify({ ...members, all: false }));
    assert.equal(follow(filled, said, [user('Continue.')]).parent, null);
  });

  it('in another form continues the branch, and the sampled tokens stay', () => {
    const ledger = createTokenLedger(model);
    const send = createConversation(ledger);
    const messages: Message[] = [asked];
    for (let turn = 0; turn < 5; turn += 1) {
      const id = `call_${turn}`;
      send(messages, reply('', call(id, 'bash', { x: turn })));
      messages.push(reply('', call(id, 'bash', { x: turn, all: false })), result(id, 'ok'));
    }
    assert.equal(ledger.forks, 0);
    assert.deepEqual(
      ledger.turns.map(({ parent }) => parent),
      [null, 0, 1, 2, 3],
    );
    const prompt = idsOf(ledger.plan({ messages, tools }).prompt);
    assert.deepEqual(
      prompt.filter((id, at) => prompt[at + 1] === 258 && id < 5),
      [0, 1, 2, 3, 4],
    );
  });
});

describe('withoutBlanks', () => {
  it('removes what a pattern for blanks before the end of a line would remove', () => {
    const unit = fc.constantFrom('a', ' ', '\n', '\t', '\r', '\u2028', '\u00a0');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 30 }), (text) => {
        assert.equal(withoutBlanks(text), text.trim().replaceAll(/\s*\n/g, '\n'));
      }),
    );
  });

  // Quadratic time would be minutes at this length, during which the gateway would serve no request.
  it('takes linear time, in a text and in an argument', () => {
    const hostile = `a${' '.repeat(1_000_000)}b`;
    const inCall = (text: string) => reply('', call('call_1', 'bash', { text }));
    const seconds = userSeconds(() => {
      assert.equal(isEchoOf(reply(hostile), reply(`${hostile}\n\nc`)), false);
      assert.equal(isEchoOf(reply(`${hostile} \nc`), reply(`${hostile}\n\nc`)), true);
      assert.equal(isEchoOf(inCall(`${hostile}\n`), inCall(hostile)), true);
    });
    assert.ok(seconds < 20, `took ${seconds} s`);
  });
});
