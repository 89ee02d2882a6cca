import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../helpers/until.ts';
import { connect, jsonOf, startSetting } from './setting.ts';

const codeOf = ({ type, data }: { type: string; data: { code: string } }) => [type, data.code];

describe('the OpenEnv server', () => {
  it('plays an episode: the first observation is the instruction, the last one has the reward', async (t) => {
    const client = connect(await startSetting(t));
    const reset = await client.send({ type: 'reset', data: {} });
    assert.equal(reset.data.observation.instruction, 'Solve one.');
    const step = await client.send({ type: 'step', data: { command: 'ls' } });
    assert.deepEqual(step, {
      type: 'observation',
      data: { observation: { output: 'bash {"command":"ls"}' }, reward: null, done: false },
    });
    const rpc = {
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'bash', arguments: { command: 'pwd' } },
    };
    const called = await client.send({ type: 'mcp', data: rpc });
    assert.deepEqual(called.data.result.data, 'bash {"command":"pwd"}');
    const end = await client.send({ type: 'step', data: { submit: true } });
    const { data } = end;
    assert.deepEqual([data.reward, data.done, data.observation.outcome], [0.5, true, 'scored']);
    const { data: state } = await client.send({ type: 'state' });
    assert.deepEqual([state.step_count, state.done, state.rollout], [3, true, 'openenv/rollout-1']);
    // Without a task the next one of the set comes, by a seed always the same one, and an id that two tasks have is refused.
    assert.equal((await client.send({ type: 'reset', data: {} })).data.observation.task_id, 'two');
    assert.equal((await client.send({ type: 'reset', data: { seed: 3 } })).data.observation.task_id, 'one');
    assert.equal((await client.send({ type: 'reset', data: { task_id: 'set#2' } })).data.observation.task_id, 'two');
    assert.deepEqual(codeOf(await client.send({ type: 'reset', data: { task_id: 'two' } })), [
      'error',
      'VALIDATION_ERROR',
    ]);
  });

  it('answers every invalid message with an error, and serves the next one', async (t) => {
    const setting = await startSetting(t);
    const client = connect(setting);
    const cases: readonly (readonly [object | string, string])[] = [
      ['{', 'INVALID_JSON'],
      ['[]', 'UNKNOWN_TYPE'],
      [{ type: 'dance' }, 'UNKNOWN_TYPE'],
      [{ type: 'step' }, 'VALIDATION_ERROR'],
      [{ type: 'step', data: { submit: false } }, 'VALIDATION_ERROR'],
      [{ type: 'step', data: { command: '' } }, 'VALIDATION_ERROR'],
      [{ type: 'reset', data: { seed: -1 } }, 'VALIDATION_ERROR'],
      [{ type: 'reset', data: { episode_id: 'x'.repeat(256) } }, 'VALIDATION_ERROR'],
      [{ type: 'step', data: { command: 'ls' } }, 'EXECUTION_ERROR'],
    ];
    for (const [message, code] of cases) assert.deepEqual(codeOf(await client.send(message)), ['error', code]);
    const tools = await client.send({ type: 'step', data: { type: 'list_tools' } });
    assert.deepEqual(tools.data.observation.tools, [
      { name: 'bash', description: 'Runs.', input_schema: { type: 'object' } },
    ]);
    const post = async (body: string) => jsonOf(await fetch(`${setting.server.url}/mcp`, { method: 'POST', body }));
    assert.equal((await post('{}')).error.code, -32600);
    assert.equal((await post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).result.tools[0].name, 'bash');
    assert.equal((await post('{"jsonrpc":"2.0","id":1,"method":"tools/call"}')).error.code, -32000);
  });

  it('refuses further clients while all places are taken, and takes one as soon as a client has left', async (t) => {
    const setting = await startSetting(t, { limits: { episodes: 1, idleMs: 60_000 } });
    const first = connect(setting);
    await first.send({ type: 'reset', data: {} });
    const refused = connect(setting);
    const reply = await refused.send({ type: 'reset', data: {} });
    assert.deepEqual([...codeOf(reply), reply.data.max_sessions], ['error', 'CAPACITY_REACHED', 1]);
    await until(refused.isClosed);
    first.close();
    await until(() => setting.running.size === 0);
    assert.equal((await connect(setting).send({ type: 'reset', data: {} })).type, 'observation');
  });

  it('ends the episode of a client that sends nothing, and of one that leaves while its rollout starts', async (t) => {
    const gate = Promise.withResolvers<void>();
    const setting = await startSetting(t, { limits: { episodes: 2, idleMs: 1_500 }, gate: gate.promise });
    const leaving = connect(setting);
    await leaving.opened;
    leaving.sendOnly({ type: 'reset', data: {} });
    const idle = connect(setting);
    await idle.opened;
    idle.sendOnly({ type: 'reset', data: {} });
    leaving.close();
    await until(leaving.isClosed);
    gate.resolve();
    assert.equal((await idle.next()).type, 'observation');
    const end = await idle.next();
    assert.match(end.data.message, /no message came for 1.5 s/);
    await until(() => idle.isClosed() && setting.running.size === 0);
  });

  it('ends all episodes when it closes, also those whose agent has not asked yet', async (t) => {
    const setting = await startSetting(t, { calls: false });
    const client = connect(setting);
    await client.opened;
    client.sendOnly({ type: 'reset', data: {} });
    await until(() => setting.running.size === 1);
    await setting.server.close();
    assert.equal(setting.running.size, 0);
    assert.deepEqual(codeOf(await client.next()), ['error', 'SESSION_ERROR']);
  });

  it('answers a gateway that restarts and asks again, and one whose agent has begun another conversation', async (t) => {
    const setting = await startSetting(t, { calls: false });
    const client = connect(setting);
    await client.opened;
    client.sendOnly({ type: 'reset', data: {} });
    const stopped = new AbortController();
    await until(() => setting.running.size === 1);
    const said = [{ role: 'user', content: 'Solve it.' }];
    const cut = setting.ask({ key: 'a', messages: said, signal: stopped.signal });
    await client.next();
    stopped.abort();
    await assert.rejects(cut);
    const other = [{ role: 'user', content: 'Another.' }, { role: 'assistant' }, { role: 'tool', content: 'new' }];
    // The server learns a moment later that the first caller has gone; until then, the other call is a second one.
    const taken = await until(async () => {
      const reply = setting.ask({ key: 'b', messages: other }).then(jsonOf);
      const stray = await Promise.race([reply, sleep(2_000, null)]);
      return stray === null ? { reply } : null;
    });
    assert.equal((await client.send({ type: 'step', data: { command: 'ls' } })).data.observation.output, 'new');
    client.sendOnly({ type: 'step', data: { command: 'pwd' } });
    const { choices } = await taken.reply;
    assert.equal(choices[0].message.tool_calls[0].function.arguments, '{"command":"pwd"}');
  });

  it('asks a gateway to come again for a session that it does not know, and names the setting it lacks', async (t) => {
    const { ask, server } = await startSetting(t);
    assert.equal((await ask({ session: 'rollout-9.1', key: 'k' })).status, 503);
    const plain = await fetch(`${server.url}/model/v1/chat/completions`, { method: 'POST', body: '{}' });
    assert.equal(plain.status, 400);
    assert.match((await jsonOf(plain)).error.message, /set namesSession of this model in upstreams.json to true/);
  });
});
