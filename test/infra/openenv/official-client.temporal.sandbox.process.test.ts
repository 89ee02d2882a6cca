import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createUpstreams } from '../../../infra/gateway/upstream/upstreams.ts';
import { modelPath } from '../../../infra/openenv/server.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import { cliOn } from '../../helpers/cli.ts';
import { pythonWith } from '../../helpers/python-packages.ts';
import { startUpstreamRollouts, type UpstreamRollouts } from '../../helpers/rollouts/upstream-rollouts.ts';
import { until } from '../../helpers/until.ts';
import { openEnvCore } from './openenv-core.ts';

const run = promisify(execFile);

async function connect(port: number) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  const replies: string[] = [];
  socket.onmessage = ({ data }) => replies.push(String(data));
  await new Promise<void>((resolve) => {
    socket.onopen = () => resolve();
  });
  const sendOnly = (message: object): void => socket.send(JSON.stringify(message));
  return {
    sendOnly,
    async send(message: object) {
      sendOnly(message);
      return JSON.parse(await until(() => replies.shift() ?? null));
    },
  };
}

describe('temper openenv serve, with the official client and mini in local sandboxes', () => {
  let directory: string;
  let upstreams: string;
  let port: number;
  let upstream: UpstreamRollouts;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-openenv-'));
    upstreams = join(directory, 'upstreams.json');
    port = await freePort();
    const url = `http://127.0.0.1:${port}${modelPath}`;
    await writeFile(upstreams, JSON.stringify({ openenv: { url, model: 'openenv', namesSession: true } }));
    upstream = await startUpstreamRollouts(createUpstreams(upstreams, {}));
  });
  after(async () => {
    await upstream?.close();
    await rm(directory, { recursive: true, force: true });
  });

  const running = async (): Promise<readonly string[]> => {
    const query = 'WorkflowType="rollout" AND ExecutionStatus="Running"';
    const ids: string[] = [];
    for await (const { workflowId } of upstream.rollouts.client.workflow.list({ query })) ids.push(workflowId);
    return ids;
  };

  it('plays episodes, rewards them, and leaves nothing of a client that vanished, a killed server, or Ctrl-C', {
    timeout: 900_000,
  }, async (t) => {
    const found = await pythonWith(openEnvCore);
    if ('missing' in found) return t.skip(found.missing);
    const tasks = upstream.tasks;
    const cli = cliOn(upstream.rollouts.home, upstream.rollouts.server, {
      TEMPER_TASK_ROOTS: tasks,
      TEMPER_UPSTREAMS: upstreams,
    });
    const args = ['--tasks', tasks, '--sandbox', 'local', '--port', String(port), '--episodes', '2'];
    const serve = async () => {
      const server = cli.start('openenv', 'serve', ...args);
      t.after(() => void server.process.kill('SIGKILL'));
      const health = () =>
        fetch(`http://127.0.0.1:${port}/health`).then(
          ({ ok }) => ok,
          () => false,
        );
      await until(async () => server.process.exitCode !== null || (await health()));
      return server;
    };
    const killed = await serve();
    const script = join(import.meta.dirname, 'openenv_client.py');
    const env = { PATH: process.env.PATH, HOME: upstream.rollouts.home, NO_PROXY: '127.0.0.1' };
    const { stdout } = await run(found.python, [script, `http://127.0.0.1:${port}`], { timeout: 600_000, env });
    const seen = JSON.parse(stdout);

    assert.equal(seen.valid.passed, true, JSON.stringify(seen.valid));
    for (const [index, task] of ['easy', 'hard'].entries()) {
      const { task_id, instruction } = seen.reset[index].observation;
      assert.deepEqual([task_id, instruction], [task, 'Write `right` into answer.txt.']);
    }
    assert.match(seen.capacity, /2 clients at once.*CAPACITY_REACHED/);
    const [badAction, badTask, badField] = seen.bad;
    assert.match(badAction, /expected an action: \{"command".*VALIDATION_ERROR/);
    assert.match(badTask, /expected a task of this environment, such as easy, hard, got "none".*VALIDATION_ERROR/);
    assert.match(badField, /expected task_id, seed or episode_id, got tasks/);
    const none = { reward: null, done: false };
    assert.deepEqual(seen.steps, [
      { observation: { output: 'easy\n[exit status 3]' }, ...none },
      { observation: { tool_name: 'edit', result: 'made', error: null }, ...none },
      {
        observation: {
          tool_name: 'none',
          result: '',
          error: { error_type: 'tool_not_found', message: 'expected one of bash, edit, submit, got "none"' },
        },
        ...none,
      },
      { observation: { output: '' }, ...none },
    ]);
    const { rollout, ...state } = seen.state;
    assert.deepEqual(state, { episode_id: 'mine', step_count: 3, task_id: 'easy', done: false });
    const scored = { output: '', outcome: 'scored', stop: 'submitted', failure: null };
    assert.deepEqual(seen.ends, [
      { observation: scored, reward: 1, done: true },
      { observation: scored, reward: 0, done: true },
    ]);
    assert.match(seen.over, /expected a running episode, got none/);
    assert.equal(seen.again.observation.task_id, 'hard');
    assert.deepEqual(seen.tools, ['bash', 'edit', 'submit']);
    assert.deepEqual(seen.mcp, ['Write `right` into answer.txt.', 'from mcp']);

    const result: RolloutResult = await upstream.rollouts.client.workflow.getHandle(rollout).result();
    assert.deepEqual([result.agent, result.reward, result.trace?.turns], ['mini', 1, 4]);
    // The client that vanished, and the one that closed in the middle of an episode.
    await until(async () => (await running()).length === 0 && (await upstream.rollouts.sandboxes()).length === 0);
    await assert.rejects(upstream.rollouts.client.workflow.getHandle(seen.vanished).result());

    const client = await connect(port);
    const reset = await client.send({ type: 'reset', data: {} });
    await upstream.gateway.restart();
    const step = await client.send({ type: 'step', data: { command: 'echo after the restart' } });
    assert.equal(step.data.observation.output, 'after the restart');
    killed.process.kill('SIGKILL');
    await killed.ended;
    const { rollout: left } = reset.data.observation.metadata;
    const { status } = await upstream.rollouts.client.workflow.getHandle(left).describe();
    assert.equal(status.name, 'RUNNING');
    // The next server takes those that it ends from the list, which lags behind.
    await until(async () => (await running()).join() === left);
    const next = await serve();
    const again = await connect(port);
    again.sendOnly({ type: 'reset', data: {} });
    await until(async () => (await running()).some((id) => id !== left));
    next.process.kill('SIGINT');
    const { code, stderr } = await next.ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /cancelled 1 episode that an earlier server of this name left/);
    await until(async () => (await running()).length === 0 && (await upstream.rollouts.sandboxes()).length === 0);
  });
});
