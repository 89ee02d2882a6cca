import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { classifyBranches } from '../../../../infra/gateway/branches/classify-branches.ts';
import { buildSegments } from '../../../../infra/gateway/branches/segments.ts';
import { createTokenLedger, type TokenLedger } from '../../../../infra/gateway/branches/token-ledger.ts';
import { loadModel, type Message, type Model } from '../../../../infra/kits/chat-tokens/index.ts';
import { call, createTalk, reply, result, system, tools, user } from '../../../helpers/gateway/talk.ts';
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
const start = (): [TokenLedger, ReturnType<typeof createTalk>] => {
  const ledger = createTokenLedger(model);
  return [ledger, createTalk(ledger)];
};

/** Kind and whether it is the agent's own line, per turn. */
function kindsOf({ turns }: TokenLedger): string[] {
  const lines = classifyBranches(turns);
  return turns.map(({ index }) => `${lines.kindOf(index)}${lines.isMain(index) ? ' of main' : ''}`);
}

describe('branches are told apart by what they hold', () => {
  it('titles and quota probes are side calls, also those that come first or carry the task', () => {
    const [ledger, talk] = start();
    talk([user('quota')], reply('ok'), []);
    talk([system('Write a title.'), task], reply('Fix parse.py'), []);
    const messages = talk([agent, task], look);
    talk([system('Name the command.'), user('cat parse.py')], reply('cat'), []);
    talk([...messages, result('c1', 'pass')], reply('Done.'));
    assert.deepEqual(kindsOf(ledger), ['side', 'side', 'main of main', 'side', 'main of main']);
    assert.equal(classifyBranches(ledger.turns).unclear, 0);
  });

  it('a sub-agent has the task that a call gave to it, also a nested one and one that is never heard of again', () => {
    const [ledger, talk] = start();
    const search = 'Search for every caller of parse() and list them.';
    const dispatch = reply('', call('d1', 'task', { prompt: search }), call('d2', 'task', { prompt: 'Read README.' }));
    const messages = talk([agent, task], dispatch);
    const nested = reply('', call('n1', 'task', { prompt: 'Look into tests/.' }));
    const sub = talk([helper, user(`<reminder>Be quick.</reminder>\n${search}`)], nested);
    talk([helper, user('Read README.')], look);
    talk([system('You help a helper.'), user('Look into tests/.')], reply('Nothing.'));
    talk([...sub, result('n1', 'Nothing.')], reply('No caller.'));
    talk([...messages, result('d1', 'No caller.'), result('d2', 'gone')], reply('Done.'));
    assert.deepEqual(kindsOf(ledger), [
      'main of main',
      'sub-agent',
      'sub-agent',
      'sub-agent',
      'sub-agent',
      'main of main',
    ]);
  });

  it('a sub-agent with the system message and tools of its dispatcher is one by its task', () => {
    const [ledger, talk] = start();
    talk([agent, task], reply('', call('d1', 'task', { prompt: 'Count the tests.' })));
    talk([agent, user('Count the tests.')], reply('Three.'));
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent']);
  });

  const summary = 'The bug is in line 3 of parse.py, which drops the last field.';
  const compactions: readonly (readonly [string, readonly Message[]])[] = [
    ['in a new first message', [agent, user(`This goes on from before.\n${summary}\nGo on.`)]],
    ['behind the first message', [agent, task, user(summary)]],
    ['as a reply', [agent, user('What did we do so far?'), reply(summary), user('Go on.')]],
  ];
  for (const [where, compacted] of compactions) {
    it(`the line goes on behind a summary that comes ${where}, whoever wrote it`, () => {
      const [ledger, talk] = start();
      const messages = talk([agent, task], look);
      const request = [...messages, result('c1', 'pass'), user('Sum up.')];
      talk(request, reply(`<analysis>hm</analysis>\n${summary}`.replace(where === 'as a reply' ? /^.*\n/ : '', '')));
      const later = talk(compacted, look);
      talk([...later, result('c1', 'pass')], reply('Done.'));
      const expected = ['main of main', 'compaction of main', 'compaction of main', 'compaction of main'];
      assert.deepEqual(kindsOf(ledger), expected);

      const [other, say] = start();
      say([agent, task], look);
      say([system('Sum up.'), user('The history.')], reply(summary), []);
      say(compacted, look);
      assert.deepEqual(kindsOf(other), ['main of main', 'compaction of main', 'compaction of main']);
    });
  }

  it('a summary that quotes a call is no task of a sub-agent', () => {
    const [ledger, talk] = start();
    const command = 'node --test test/parse.test.ts --verbose';
    const messages = talk([agent, task], reply('', call('c1', 'bash', { command })));
    talk([...messages, result('c1', 'pass'), user('Sum up.')], reply(`${summary}\nIt ran:\n${command}`));
    talk([agent, user(`Before:\n${summary}\nIt ran:\n${command}\nGo on.`)], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'compaction of main', 'compaction of main']);
  });

  it('a line that is told anew under other tools is a fork of it, although its task names what was called', () => {
    const [ledger, talk] = start();
    const path = '/workspace/src/parsers/delimited/parse.py';
    const named = user(`Fix the bug in ${path} at once.`);
    const messages = talk([agent, named], reply('', call('c1', 'read', { path })));
    talk([...messages, result('c1', 'pass')], look, [...tools, ...tools]);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'fork of main']);
  });

  it("a short task is known between an agent's notes", () => {
    const [ledger, talk] = start();
    talk([agent, task], reply('', call('d1', 'task', { prompt: 'Count.' }), call('d2', 'task', { prompt: 'Look.' })));
    talk([helper, user('<note>x</note>\nCount.')], look);
    talk([helper, user('Look.\n<note>y</note>')], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent', 'sub-agent']);
  });

  it('a line that is told anew is a fork of it, also with other tools', () => {
    const [ledger, talk] = start();
    const messages = talk([agent, task], look);
    talk([agent, task, reply('I look.', ...look.toolCalls), result('c1', 'x')], reply('Well.'));
    talk([...messages, result('c1', 'y')], reply('So.'), [...tools, ...tools]);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'fork of main', 'fork of main']);
  });

  it('a fork of a sub-agent is not the main line', () => {
    const [ledger, talk] = start();
    talk([agent, task], reply('', call('d1', 'task', { prompt: 'Count the tests.' })));
    talk([helper, user('Count the tests.')], look);
    talk([helper, user('Count the tests.'), reply('Changed.'), user('And?')], reply('Three.'));
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent', 'fork']);
    const { branches } = buildSegments(ledger.turns);
    assert.deepEqual(
      branches.map(({ aside }) => aside ?? false),
      [false, true, true],
    );
  });

  it('the main line is the one that began, whichever of its branches goes on', () => {
    const [ledger, talk] = start();
    talk([agent, task], reply('', call('d1', 'task', { prompt: 'Count the tests.' })));
    const sub = talk([helper, user('Count the tests.')], look);
    talk([...sub, result('c1', 'x')], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'sub-agent', 'sub-agent']);

    const [toolless, say] = start();
    say([user('A title?')], reply('T'), []);
    say([agent, task], reply('Hm.'), []);
    const told = say([agent, task, reply('Told anew.'), user('Go on.')], reply('So.'), []);
    say([...told, user('More.')], reply('Done.'), []);
    assert.deepEqual(kindsOf(toolless), ['side', 'main of main', 'fork of main', 'fork of main']);
  });

  it('what nothing is known of stays on the main line, and is counted', () => {
    const [ledger, talk] = start();
    talk([agent, task], reply('Done.'));
    talk([agent, user('Something else.')], reply('Done too.'));
    talk([system('Who knows.'), user('Whatever.')], look);
    assert.deepEqual(kindsOf(ledger), ['main of main', 'main of main', 'main of main']);
    assert.equal(classifyBranches(ledger.turns).unclear, 2);
  });

  it('turns of older journals, which do not say whether tools were offered, are told apart by their context', () => {
    const [ledger, talk] = start();
    talk([agent, task], look);
    talk([helper, user('A title?')], reply('Title'));
    const turns = ledger.turns.map(({ offersTools: _, ...turn }) => turn);
    assert.equal(classifyBranches(turns).kindOf(1), 'side');
  });

  it('a session without a turn has no line', () => {
    assert.equal(classifyBranches([]).unclear, 0);
  });
});
