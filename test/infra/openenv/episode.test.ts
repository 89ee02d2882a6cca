import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEpisode } from '../../../infra/openenv/episodes/episode.ts';
import { type ModelCall, readModelCall } from '../../../infra/openenv/episodes/model-call.ts';

const never = new AbortController().signal;
const call = (key: string, epoch = 1): ModelCall => ({ key, epoch, instruction: 'Fix it.', output: key, tools: [] });
const ls = { tool: 'bash', arguments: { command: 'ls' } };
const scored = { outcome: 'scored', reward: 1, stop: 'submitted', failure: null };

describe('an episode', () => {
  it('passes each model call to the client and the reply back, and gives a repeated call the same reply', async () => {
    const episode = createEpisode();
    const asked = episode.ask(call('a'), never);
    const repeated = episode.ask(call('a'), never);
    assert.deepEqual(await episode.first(), { kind: 'call', call: call('a'), restarted: false });
    const next = episode.answer(ls);
    assert.deepEqual([await asked, await repeated, await episode.ask(call('a'), never)], [ls, ls, ls]);
    void episode.ask(call('b'), never);
    assert.deepEqual(await next, { kind: 'call', call: call('b'), restarted: false });
  });

  it('shows the client one conversation: another call meanwhile gets a reply of its own', async () => {
    const episode = createEpisode();
    const asked = episode.ask(call('a'), never);
    const stray = await episode.ask(call('x'), never);
    assert.match('text' in stray ? stray.text : '', /Another request of this episode/);
    await episode.first();
    episode.ended(scored);
    assert.deepEqual(await asked, { text: 'The episode is over.' });
  });

  it('tells the client that a lost sandbox was replaced, without running the action for the earlier one', async () => {
    const episode = createEpisode();
    const lost = episode.ask(call('a'), never);
    await episode.first();
    const again = episode.ask(call('a', 2), never);
    assert.deepEqual(await episode.answer(ls), { kind: 'call', call: call('a', 2), restarted: true });
    assert.deepEqual(await lost, { text: 'The episode is over.' });
    assert.deepEqual(await episode.ask(call('late', 1), never), {
      text: 'Another request of this episode waits for its answer; this one gets none.',
    });
    const rest = episode.answer(ls);
    assert.deepEqual(await again, ls);
    episode.ended(scored);
    assert.deepEqual(await rest, { kind: 'end', end: scored });
  });

  it('keeps a call whose caller has gone until it is repeated, or another one comes', async () => {
    const episode = createEpisode();
    const gone = new AbortController();
    const asked = episode.ask(call('a'), gone.signal);
    await episode.first();
    gone.abort(new Error('the gateway stops'));
    await assert.rejects(asked, /the gateway stops/);
    const repeated = episode.ask(call('a'), never);
    const next = episode.answer(ls);
    assert.deepEqual(await repeated, ls);
    const other = new AbortController();
    const lost = episode.ask(call('b'), other.signal);
    assert.equal((await next).kind, 'call');
    other.abort(new Error('gone'));
    await assert.rejects(lost);
    void episode.ask(call('c'), never);
    const event = await episode.answer(ls);
    assert.equal(event.kind === 'call' ? event.call.key : '', 'c');
  });

  it('returns its end instead of running an action, also twice', async () => {
    const episode = createEpisode();
    const asked = episode.ask(call('a'), never);
    await episode.first();
    episode.ended(scored);
    assert.deepEqual(await asked, { text: 'The episode is over.' });
    for (const _ of [1, 2]) assert.deepEqual(await episode.answer(ls), { kind: 'end', end: scored });
    assert.deepEqual(await episode.ask(call('b'), never), { text: 'The episode is over.' });
  });
});

describe('a model call', () => {
  const body = {
    model: 'openenv',
    messages: [
      { role: 'system', content: 'Repair.' },
      { role: 'user', content: 'Fix it.' },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'tool', tool_call_id: 'c', content: 'a.js' },
      { role: 'user', content: 'Call a tool.' },
    ],
    tools: [{ type: 'function', function: { name: 'bash', description: null, parameters: { type: 'object' } } }],
  };

  it('shows the instruction, what came since the last reply, and the tools', () => {
    assert.deepEqual(readModelCall(body, { key: 'k', epoch: 2 }), {
      key: 'k',
      epoch: 2,
      instruction: 'Fix it.',
      output: 'a.js\nCall a tool.',
      tools: [{ name: 'bash', description: '', schema: { type: 'object' } }],
    });
  });

  it('is bounded, and null if it is no conversation', () => {
    const long = { ...body, messages: [{ role: 'assistant' }, { role: 'tool', content: 'x'.repeat(1_000_000) }] };
    assert.equal(readModelCall(long, { key: 'k', epoch: 1 })?.output.length, 200_000);
    for (const wrong of [null, [], { messages: [] }, { ...body, messages: [{ role: 'other' }] }]) {
      assert.equal(readModelCall(wrong, { key: 'k', epoch: 1 }), null);
    }
  });
});
