import assert from 'node:assert/strict';
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { isRunning, type ProcessIdentity } from '../../../infra/process/process-identity.mjs';
import { freePort, isPortFree } from '../../../infra/temporal/ports.ts';
import { partKinds } from '../../../workers/up/part.ts';
import { readUpFile, type UpFile } from '../../../workers/up/up-file.ts';
import { startScriptedServer } from '../../helpers/engine/scripted-server.ts';
import { until } from '../../helpers/until.ts';

const program = join(import.meta.dirname, '../../../workers/cli.ts');
/** The limit of each wait: a stack starts in seconds, but may take a minute on a busy machine. */
const timeoutMs = 180_000;

describe('temper up', () => {
  let home: string;
  let stack: ChildProcess;
  let metricsPort: number;
  before(async () => {
    metricsPort = await threeFreePorts();
    home = await mkdtemp(join(tmpdir(), 'temper-whole-'));
    stack = temper('up', '--port', 'auto');
    await untilUp((file) => file.parts.length === partKinds.length);
  });
  after(async () => {
    stack.kill('SIGKILL');
    await rm(home, { recursive: true, force: true });
  });

  it('restarts every part that is killed, each under a new pid', async () => {
    const killed = await upFile();
    for (const { name, process: part } of killed.parts) process.kill(pidOf(part, name), 'SIGKILL');
    const again = await untilUp(({ parts }) => parts.every(({ restarts }) => restarts >= 1));
    assert.deepEqual(again.parts.map(({ name }) => name).sort(), [...partKinds].sort());
    const before = killed.parts.map(({ process: part }) => part?.pid);
    assert.ok(again.parts.every(({ process: part }) => !before.includes(part?.pid)));
  });

  it('runs rollouts after the restarts, printing one line of JSON each, with exit code 0', async () => {
    const tasks = 'generated:test/1?count=2';
    const rollouts = temper(
      'rollout',
      '--tasks',
      tasks,
      '--agent',
      'oracle',
      '--sandbox',
      'local',
      '--json',
      '--no-up',
    );
    const [output, [code]] = await Promise.all([text(rollouts.stdout), once(rollouts, 'exit')]);
    const rows = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(code, 0);
    assert.deepEqual(
      rows.map(({ outcome, reward }) => [outcome, reward]),
      [
        ['scored', 1],
        ['scored', 1],
      ],
    );
  });

  it('counts the finished rollouts for Prometheus', async () => {
    const served = await Promise.all([0, 1, 2].map((next) => fetch(`http://127.0.0.1:${metricsPort + next}/metrics`)));
    const [control = '', ...others] = await Promise.all(served.map((reply) => reply.text()));
    const labels = ['agent="oracle"', 'purpose="evaluation"', 'outcome="scored"', 'failure="none"'];
    const line = control.split('\n').find((one) => labels.every((label) => one.includes(label))) ?? '';
    assert.match(line, /^temper_rollouts_total\{.*\} 2$/);
    assert.ok([control, ...others].every((text) => text.includes('temporal_worker_task_slots_available')));
  });

  it('calls the upstream model that --upstream names, and refuses an unknown one', async () => {
    const submit = { id: 'c1', type: 'function', function: { name: 'submit', arguments: '{}' } };
    const choices = [{ message: { content: null, tool_calls: [submit] }, finish_reason: 'tool_calls' }];
    const json = { model: 'large-1', choices, usage: { prompt_tokens: 9, completion_tokens: 2 } };
    const model = await startScriptedServer({ 'POST /v1/chat/completions': () => ({ status: 200, json }) });
    try {
      await writeFile(
        join(home, 'upstreams.json'),
        JSON.stringify({ others: { url: `${model.url}/v1`, model: 'large' } }),
      );
      const ask = async (agent: string, upstream: string) => {
        const tasks = ['--tasks', 'generated:test/1?count=1', '--sandbox', 'local', '--json', '--no-up'];
        const args = [program, 'rollout', ...tasks, '--agent', agent, '--upstream', upstream];
        const asked = spawn(process.execPath, args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
        const [out, err, [code]] = await Promise.all([text(asked.stdout), text(asked.stderr), once(asked, 'exit')]);
        return { out, err, code };
      };
      const { outcome, stop } = JSON.parse((await ask('mini', 'others')).out);
      assert.deepEqual([outcome, stop, model.seen.length], ['scored', 'submitted', 1]);
      const unknown = await ask('mini', 'unknown');
      assert.deepEqual([unknown.code, unknown.out], [1, '']);
      assert.match(unknown.err, /expected one that \S+upstreams\.json names \(others\), got unknown/);
      const silent = await ask('oracle', 'others');
      assert.deepEqual([silent.code, silent.out], [2, '']);
      assert.match(silent.err, /--upstream: the agent oracle calls no model/);
    } finally {
      await model.close();
    }
  });

  it('validates tasks, printing one line of JSON each, with exit code 0', async () => {
    const tasks = 'generated:test/1?count=1';
    const validation = temper('tasks', 'validate', tasks, '--sandbox', 'local', '--json', '--no-up');
    const [output, [code]] = await Promise.all([text(validation.stdout), once(validation, 'exit')]);
    const { task, valid, why } = JSON.parse(output);
    assert.deepEqual([code, task, valid, why], [0, 'generated-test-1-0', true, null]);
  });

  it('ends all of its processes on SIGTERM, and when it is killed', async () => {
    const first = identities(await upFile());
    stack.kill('SIGTERM');
    const [code] = await once(stack, 'exit');
    assert.equal(code, 0);
    assert.ok(!first.some(isRunning), 'expected no process of the stack');

    stack = temper('up', '--port', 'auto');
    const second = identities(await untilUp((file) => file.parts.length === partKinds.length));
    stack.kill('SIGKILL');
    await until(() => !second.some(isRunning), timeoutMs);
  });

  function environment(): NodeJS.ProcessEnv {
    const { TEMPORAL_ADDRESS: _, ...env } = process.env;
    const own = {
      TEMPER_HOME: home,
      TEMPER_METRICS_PORT: String(metricsPort),
      TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
    };
    return { ...env, ...own };
  }

  function temper(...args: readonly string[]): ChildProcessByStdio<null, Readable, null> {
    return spawn(process.execPath, [program, ...args], { env: environment(), stdio: ['ignore', 'pipe', 'inherit'] });
  }

  const untilUp = (wanted: (file: UpFile) => boolean): Promise<UpFile> =>
    until(async () => {
      assert.equal(stack.exitCode, null, 'expected the stack to run, but it has ended');
      const file = await readUpFile(join(home, 'up.json'));
      const running = file?.parts.every(({ state }) => state === 'running') ?? false;
      return file !== null && running && wanted(file) ? file : null;
    }, timeoutMs);

  async function upFile(): Promise<UpFile> {
    const file = await readUpFile(join(home, 'up.json'));
    assert.ok(file !== null, 'expected an up.json');
    return file;
  }
});

const identities = (file: UpFile): ProcessIdentity[] => file.parts.flatMap((part) => part.process ?? []);

function pidOf(part: ProcessIdentity | null, name: string): number {
  assert.ok(part !== null, `expected ${name} to run`);
  return part.pid;
}

/** Returns the first of three free ports in a row. */
async function threeFreePorts(): Promise<number> {
  for (;;) {
    const first = await freePort();
    const others = await Promise.all([isPortFree(first + 1), isPortFree(first + 2)]);
    if (others.every(Boolean)) return first;
  }
}
