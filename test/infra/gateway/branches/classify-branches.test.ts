import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { classifyBranches } from '../../../../infra/gateway/branches/classify-branches.ts';
import { buildSegments } from '../../../../infra/gateway/branches/segments.ts';
import { createTokenLedger, type TokenLedger } from '../../../../infra/gateway/branches/token-ledger.ts';
import { loadModel, type Message, type Model } from '../../../../infra/kits/chat-tokens/index.ts';
import { call, createConversation, reply, result, system, tools, user } from '../../../helpers/gateway/conversation.ts';
import { type TinyModel, writeTinyModel } from '../../../helpers/models/tiny-model.ts';

let dir: TinyModel;
let model: Model;
before(async () => {
  dir = await writeTinyModel();
  model = await loadModel(dir.dir);
});
after(() => dir[Symbol.asyncDispose]());

const agent = system('You are an agent.');
const helper = system('You help an agent.');
const task = user('Fix the bug in parse.py.');
const look = reply('', call('c1', 'bash', { command: 'cat parse.py' }));
const start = (): [TokenLedger, ReturnType<typeof createConversation>] => {
  const ledger = createTokenLedger(model);
  return [ledger, createConversation(ledger)];
};

/** Kind and whether it is the agent's own line, per turn. */
function kindsOf({ turns }: TokenLedger): string[] {
  const lines = classifyBranches(turns);
  return turns.map(({ index }) => `${lines.kindOf(index)}${lines.isMain(index) ? ' of main' : ''}`);
}

describe('the classification of branches', () => {
  it('takes titles and quota probes for side calls, also those that come first or quote the task', () => {
    const [ledger, send] = start();
    send([user('quota')], reply('ok'), []);
    send([system('Write a title.'), task], reply('Fix parse.py'), []);
    const messages = send([agent, task], look);
    send([system('Name the command.'), user('cat parse.py')], reply('cat'), []);
    send([...messages, result('c1', 'pass')], reply('Done.'));
    assert.deepEqual(kindsOf(ledger), ['side', 'side', 'main of main', 'side', 'main of main']);
    assert.equal(classifyBranches(ledger.turns).unclear, 0);
  });

  it('recognizes a sub-agent by its delegated task, also a nested one and one that never returns', () => {
    const [ledger, send] = start();
    const search = 'Search for every caller of parse() and list them.';
    const dispatch = reply('', call('d1', 'task', { prompt: search }), call('d2', 'task', { prompt: 'Read README.' }));
    const messages = send([agent, task], dispatch);
    const nested = reply('', call('n1', 'task', { prompt: 'Look into tests/.' }));
    const sub = send([helper, user(`<reminder>Be quick.</reminder>\n${search}`)], nested);
    send([helper, user('Read README.')], look);
    send([system('You help a helper.'), user('Look into tests/.')], reply('Nothing.'));
    send([...sub, result('n1', 'Nothing.')], reply('No caller.'));
    send([...messages, result('d1', 'No caller.'), result('d2', 'gone')], reply('Done.'));
    assert.deepEqual(kindsOf(ledger), [
      'main of main',
      'sub-agent',
      'sub-agent',
      'sub-agent',
      'sub-agent',
      'main of main',
    ]);
  });

  it('recognizes a sub-agent with the context of its parent by its task', () => {
    const [ledger, send] = start();
    send([agent, task], reply('', call('d1', 'task', { prompt: 'Count the tests.' })));
    send([agent, user('Count the tests.')], reply('Three.'));
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent']);
  });

  it('takes a further sample of the request that began a sub-agent for a sub-agent, and one of the main request for a fork', () => {
    const [ledger, send] = start();
    const count = (id: string) => call(id, 'task', { prompt: 'Count the tests.' });
    send([agent, task], reply('', count('d1'), count('d2')));
    for (const said of ['Three.', 'Four.']) send([helper, user('Count the tests.')], reply(said));
    send([agent, task], look);
    const turns = ledger.turns.map((turn, at) => (at < 2 ? turn : { ...turn, sample: 2 }));
    const { kindOf, isMain, rootOf } = classifyBranches(turns);
    assert.deepEqual(
      turns.map(({ index }) => [kindOf(index), isMain(index), rootOf(index)]),
      [
        ['main', true, 0],
        ['sub-agent', false, 1],
        ['sub-agent', false, 2],
        ['fork', true, 3],
      ],
    );
  });

  const summary = 'The bug is in line 3 of parse.py, which drops the last field.';
  const compactions: readonly (readonly [string, readonly Message[]])[] = [
    ['in a new first message', [agent, user(`This continues from before.\n${summary}\nContinue.`)]],
    ['after the first message', [agent, task, user(summary)]],
    ['as a reply', [agent, user('What did we do so far?'), reply(summary), user('Continue.')]],
  ];
  for (const [where, compacted] of compactions) {
    it(`continues the main conversation after a summary ${where}, whichever branch wrote it`, () => {
      const [ledger, send] = start();
      const messages = send([agent, task], look);
      const request = [...messages, result('c1', 'pass'), user('Sum up.')];
      send(request, reply(`<analysis>hm</analysis>\n${summary}`.replace(where === 'as a reply' ? /^.*\n/ : '', '')));
      const later = send(compacted, look);
      send([...later, result('c1', 'pass')], reply('Done.'));
      const expected = ['main of main', 'compaction of main', 'compaction of main', 'compaction of main'];
      assert.deepEqual(kindsOf(ledger), expected);

      const [other, say] = start();
      say([agent, task], look);
      say([system('Sum up.'), user('The history.')], reply(summary), []);
      say(compacted, look);
      assert.deepEqual(kindsOf(other), ['main of main', 'compaction of main', 'compaction of main']);
    });
  }

  it('does not take a summary that quotes a call for the task of a sub-agent', () => {
    const [ledger, send] = start();
    const command = 'node --test test/parse.test.ts --verbose';
    const messages = send([agent, task], reply('', call('c1', 'bash', { command })));
    send([...messages, result('c1', 'pass'), user('Sum up.')], reply(`${summary}\nIt ran:\n${command}`));
    send([agent, user(`Before:\n${summary}\nIt ran:\n${command}\nContinue.`)], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'compaction of main', 'compaction of main']);
  });

  it('takes a rewritten history with other tools for a fork, although its task names what was called', () => {
    const [ledger, send] = start();
    const path = '/workspace/src/parsers/delimited/parse.py';
    const named = user(`Fix the bug in ${path} at once.`);
    const messages = send([agent, named], reply('', call('c1', 'read', { path })));
    send([...messages, result('c1', 'pass')], look, [...tools, ...tools]);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'fork of main']);
  });

  it("finds a short task between an agent's notes", () => {
    const [ledger, send] = start();
    send([agent, task], reply('', call('d1', 'task', { prompt: 'Count.' }), call('d2', 'task', { prompt: 'Look.' })));
    send([helper, user('<note>x</note>\nCount.')], look);
    send([helper, user('Look.\n<note>y</note>')], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent', 'sub-agent']);
  });

  it('takes a rewritten history for a fork, also with other tools', () => {
    const [ledger, send] = start();
    const messages = send([agent, task], look);
    send([agent, task, reply('I look.', ...look.toolCalls), result('c1', 'x')], reply('Well.'));
    send([...messages, result('c1', 'y')], reply('So.'), [...tools, ...tools]);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'fork of main', 'fork of main']);
  });

  it('does not take a fork of a sub-agent for the main conversation', () => {
    const [ledger, send] = start();
    send([agent, task], reply('', call('d1', 'task', { prompt: 'Count the tests.' })));
    send([helper, user('Count the tests.')], look);
    send([helper, user('Count the tests.'), reply('Changed.'), user('And?')], reply('Three.'));
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent', 'fork']);
    const { branches } = buildSegments(ledger.turns);
    assert.deepEqual(
      branches.map(({ aside }) => aside ?? false),
      [false, true, true],
    );
  });

  it('takes the conversation that began first for the main one, whichever of its branches continues', () => {
    const [ledger, send] = start();
    send([agent, task], reply('', call('d1', 'task', { prompt: 'Count the tests.' })));
    const sub = send([helper, user('Count the tests.')], look);
    send([...sub, result('c1', 'x')], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent', 'sub-agent']);

    const [toolless, say] = start();
    say([user('A title?')], reply('T'), []);
    say([agent, task], reply('Hm.'), []);
    const rewritten = say([agent, task, reply('Rewritten.'), user('Continue.')], reply('So.'), []);
    say([...rewritten, user('More.')], reply('Done.'), []);
    assert.deepEqual(kindsOf(toolless), ['side', 'main of main', 'fork of main', 'fork of main']);
  });

  it('leaves an unrecognized branch on the main conversation, and counts it', () => {
    const [ledger, send] = start();
    send([agent, task], reply('Done.'));
    send([agent, user('Something else.')], reply('Done too.'));
    send([system('Who knows.'), user('Whatever.')], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'main of main', 'main of main']);
    assert.equal(classifyBranches(ledger.turns).unclear, 2);
  });

  it('accepts a session without a turn', () => {
    assert.equal(classifyBranches([]).unclear, 0);
  });
});
