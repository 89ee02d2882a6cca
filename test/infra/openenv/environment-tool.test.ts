import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { socketOf } from '../../../infra/gateway/sockets.ts';
import type { HostToolReply } from '../../../infra/gateway/tools/host-tool.ts';
import { createToolbox } from '../../../infra/gateway/tools/toolbox.ts';
import { createEnvironments } from '../../../infra/openenv/environments/environments.ts';
import { createEnvironmentTool } from '../../../infra/openenv/environments/tool.ts';
import type { HostCall } from '../../../workflows/contracts/host-tools.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { openSession, startTestGateway } from '../../helpers/gateway/gateway.ts';
import { connectMcp } from '../../helpers/gateway/mcp-client.ts';
import { until } from '../../helpers/until.ts';
import { type GuessEnvironment, startGuessEnvironment } from './guess-environment.ts';

const never = new AbortController().signal;
const first = '{"hint":"guess a number from 0 to 9"}';

/** The tool of one gateway process; `calls` are the calls that the session has recorded. */
function toolOf(
  { url }: Pick<GuessEnvironment, 'url'>,
  reward: 'last' | 'sum' = 'last',
  { callMs = 240_000, reset = {} }: { readonly callMs?: number; readonly reset?: object } = {},
) {
  const tool = createEnvironmentTool({ find: async (name) => ({ name, url, token: null }) }, { connectMs: 0, callMs });
  const file = async () => Buffer.from(JSON.stringify({ environment: 'guess', reset: { seed: 47, ...reset }, reward }));
  return async (calls: HostCall[], args: Record<string, unknown>): Promise<HostToolReply> => {
    const context = { session: 'rollout.1', task: { id: 'guess-47', file }, calls, signal: never };
    const reply = await tool.call(args, context);
    const { text, answer } = typeof reply === 'string' ? { text: reply, answer: undefined } : reply;
    const times = { index: calls.length, turns: 0, startedAt: 0, endedAt: 0 };
    calls.push({
      ...times,
      tool: 'environment',
      arguments: JSON.stringify(args),
      result: text,
      ...(answer !== undefined && { answer }),
    });
    return reply;
  };
}

async function startEnvironment(t: TestContext): Promise<GuessEnvironment> {
  const environment = await startGuessEnvironment();
  t.after(() => environment.close());
  return environment;
}

describe('the host tool environment', () => {
  it('shows observations, takes actions, and records the reward for the tests alone', async (t) => {
    const environment = await startEnvironment(t);
    const call = toolOf(environment);
    const calls: HostCall[] = [];
    assert.equal(await call(calls, {}), first);
    assert.deepEqual(await call(calls, { action: { guess: 3 } }), { text: '{"hint":"higher"}', answer: '0.1' });
    assert.deepEqual(await call(calls, { action: { number: 7 } }), { text: 'error: expected a guess', answer: '0.1' });
    const end = await call(calls, { action: { guess: 7 } });
    assert.deepEqual(end, { text: '{"hint":"right"}\nThe episode is over.', answer: '1' });
    assert.equal(await call(calls, { action: { guess: 7 } }), 'The episode is over.');
    assert.deepEqual(environment.seen[0], { type: 'reset', data: { seed: 47 } });
    await until(() => environment.open === 0);
  });

  it('shows an observation that is no object as it is', async (t) => {
    const call = toolOf(await startEnvironment(t));
    const calls: HostCall[] = [];
    await call(calls, {});
    for (const echo of ['a board', 47, ['x', 'o'], null]) {
      assert.equal(await call(calls, { action: { echo } }), JSON.stringify(echo));
    }
    // A text that ends as the end of an episode does is in quotation marks, so it ends none.
    await call(calls, { action: { echo: 'The episode is over.' } });
    assert.deepEqual(await call(calls, { action: { guess: 3 } }), { text: '{"hint":"higher"}', answer: '0.1' });
  });

  it('adds the rewards up where the task says so, and begins by itself with an action', async (t) => {
    const call = toolOf(await startEnvironment(t), 'sum');
    const calls: HostCall[] = [];
    assert.deepEqual(await call(calls, { action: { guess: 9 } }), { text: '{"hint":"lower"}', answer: '0.1' });
    const end = await call(calls, { action: { guess: 7 } });
    assert.equal(typeof end === 'string' ? '' : end.answer, '1.1');
  });

  it('plays the recorded actions again where the connection or the gateway has gone', async (t) => {
    const environment = await startEnvironment(t);
    const calls: HostCall[] = [];
    const call = toolOf(environment, 'sum');
    await call(calls, {});
    await call(calls, { action: { guess: 3 } });
    environment.cut();
    await until(() => environment.open === 0);
    await call(calls, { action: { guess: 4 } });
    // Another process knows the calls alone.
    const end = await toolOf(environment, 'sum')(calls, { action: { guess: 7 } });
    assert.deepEqual(end, { text: '{"hint":"right"}\nThe episode is over.', answer: '1.2' });
    const resets = environment.seen.filter(({ type }) => type === 'reset');
    assert.equal(resets.length, 3);
  });

  it('fails as a lost environment if that gives other results, or if nothing answers', async (t) => {
    const environment = await startEnvironment(t);
    const calls: HostCall[] = [];
    await toolOf(environment)(calls, { action: { guess: 3 } });
    environment.greet('more');
    const lost = { type: 'EnvironmentUnavailable', message: /play action 1 again and gave another result/ };
    await assert.rejects(toolOf(environment)(calls, { action: { guess: 4 } }), lost);
    const nowhere = { url: 'http://127.0.0.1:1' };
    await assert.rejects(toolOf(nowhere)([], {}), { type: 'EnvironmentUnavailable', message: /ECONNREFUSED/ });
  });

  it('ends the episode with its rewards at an action that is not answered, or with too much, or at which it fails', async (t) => {
    const environment = await startEnvironment(t);
    const ends: readonly (readonly [object, RegExp])[] = [
      [{ hang: true }, /^error: the environment did not answer this action in \d+ s; .*\nThe episode is over\.$/],
      [
        { flood: 17 * 2 ** 20 },
        /^error: the environment answered this action with more than 16 MB.*\nThe episode is over\.$/,
      ],
      [{ close: 1009 }, /refused its size.*\nThe episode is over\.$/],
      [{ close: 1011 }, /^error: the environment failed at this action; .*\nThe episode is over\.$/],
      [{ error: 'SESSION_ERROR' }, /^error: the environment failed at this action; .*\nThe episode is over\.$/],
    ];
    for (const [action, text] of ends) {
      const call = toolOf(environment, 'last', { callMs: 'hang' in action ? 6_000 : 60_000 });
      const calls: HostCall[] = [];
      await call(calls, { action: { guess: 3 } });
      const end = await call(calls, { action });
      assert.ok(typeof end === 'object');
      assert.match(end.text, text);
      assert.equal(end.answer, '0.1');
      assert.equal(await call(calls, { action: { guess: 7 } }), 'The episode is over.');
      // Another process does not play it again.
      assert.equal(await toolOf(environment)(calls, {}), 'The episode is over.');
    }
    await until(() => environment.open === 0);
  });

  it('fails as a lost environment if that hangs before an action, or goes at one', async (t) => {
    const environment = await startEnvironment(t);
    const late = { type: 'EnvironmentUnavailable', message: /did not answer in time/ };
    const hanging = toolOf(environment, 'last', { callMs: 300, reset: { hang: true } });
    await assert.rejects(hanging([], { action: { guess: 3 } }), late);
    const gone = { type: 'EnvironmentUnavailable', message: /closed the connection/ };
    await assert.rejects(toolOf(environment)([], { action: { close: 1012 } }), gone);
    const refused = { type: 'EnvironmentUnavailable', message: /ECONNREFUSED/ };
    await assert.rejects(toolOf(environment)([], { action: { close: 1011, forever: true } }), refused);
  });

  it('fails as a lost environment where the operator has not named it, or not rightly, and refuses the task before', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'temper-environments-'));
    t.after(() => rm(directory, { recursive: true }));
    const path = join(directory, 'environments.json');
    const tool = createEnvironmentTool(createEnvironments(path, {}), { connectMs: 0 });
    const failure = (file: string | null, message: RegExp) => {
      const bytes = file === null ? null : Buffer.from(file);
      const context = { session: 's.1', task: { id: 'guess-0', file: async () => bytes }, calls: [], signal: never };
      return assert.rejects(async () => tool.call({}, context), { type: 'EnvironmentUnavailable', message });
    };
    const unnamed = /expected one that .*environments.json names \(none\), got guess/;
    await failure('{"environment":"guess"}', unnamed);
    const task = { id: 'guess-0', file: async () => Buffer.from('{"environment":"guess"}') };
    await assert.rejects(createToolbox([tool]).require(['environment'], task), {
      type: 'UnsupportedTask',
      message: unnamed,
    });
    const other = { name: 'other', description: 'Works for no task.', input: {}, call: () => '' };
    const picky = { ...other, check: () => Promise.reject(new Error('it has no glossary')) };
    await assert.rejects(createToolbox([picky]).require(['other'], task), {
      type: 'UnsupportedTask',
      message: 'host tool other cannot work for task guess-0: it has no glossary',
    });
    await writeFile(path, '{"guess":{"url":"http://127.0.0.1:1","tokenFrom":"NO_SUCH_TOKEN"}}');
    await failure('{"environment":"guess"}', /guess.tokenFrom: expected NO_SUCH_TOKEN in the environment/);
    await writeFile(path, '{"guess":{"url":"ftp://127.0.0.1"}}');
    await failure('{"environment":"guess"}', /guess.url: expected an address that begins with http/);
    await failure(null, /expected tools\/environment.json, got no such file/);
  });

  it('seals the reward as the answer of the session, and a lost environment as a failure', async (t) => {
    const environment = await startEnvironment(t);
    let url = environment.url;
    const tool = createEnvironmentTool({ find: async (name) => ({ name, url, token: null }) }, { connectMs: 0 });
    const bytes = Buffer.from(JSON.stringify({ environment: 'guess', reset: { seed: 5 } }));
    await using gateway = await startTestGateway(createScriptedEngine({ script: () => ({ kind: 'say', ids: [65] }) }), {
      toolbox: createToolbox([tool]),
      taskFiles: async () => new Map([['environment.json', { mode: 0o644, bytes }]]),
    });
    const task = { id: 'guess-5', bundle: { digest: '0'.repeat(64), size: 1, mediaType: 'application/x-tar' } };
    await assert.rejects(
      gateway.control.open({ ...openSession('both.1'), hostTools: ['answer', 'environment'], task }),
      {
        type: 'UnsupportedTask',
        message: /would pass for the reward/,
      },
    );
    const play = async (session: string, guess: number) => {
      const secret = await gateway.open(session, { hostTools: ['environment'], task });
      await using client = await connectMcp(socketOf(gateway.options.sockets.agents, gateway.options.name), secret);
      const said = await client.call('environment', { action: { guess } });
      return { said, summary: await gateway.control.seal(session) };
    };
    const right = await play('right.1', 5);
    assert.equal(right.said, '{"hint":"right"}\nThe episode is over.');
    assert.equal(String(await gateway.store.get(right.summary.answer?.digest ?? '')), '1');
    assert.equal(right.summary.environmentFailures, undefined);
    url = 'http://127.0.0.1:1';
    const lost = await play('lost.1', 5);
    assert.match(lost.said, /^error: the gateway failed/);
    assert.deepEqual([lost.summary.environmentFailures, lost.summary.answer], [1, undefined]);
  });
});
