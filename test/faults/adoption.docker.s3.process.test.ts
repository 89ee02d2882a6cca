import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRuntime } from '../../infra/agents/runtime.ts';
import { readConfig } from '../../infra/config.ts';
import { socketOf } from '../../infra/gateway/sockets.ts';
import { loadModel } from '../../infra/kits/chat-tokens/index.ts';
import { cacheDirectory } from '../../infra/process/cache.mjs';
import { templateNameOf } from '../../infra/sandbox/e2b/templates.ts';
import type { S3Place } from '../../infra/store/s3/place.ts';
import { openState, type StackState } from '../../workers/open-state.ts';
import { pollers, untilSocketAnswers } from '../../workers/up/ready.ts';
import { agentSandboxName, sessionId } from '../../workflows/contracts/ids.ts';
import { rolloutStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue, hostQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Trace } from '../../workflows/contracts/trace.ts';
import { cliOn } from '../helpers/cli.ts';
import { type E2bServer, startE2bServer } from '../helpers/e2b/server.ts';
import type { ScriptedServer } from '../helpers/engine/scripted-server.ts';
import { startScriptedVllm } from '../helpers/engine/scripted-vllm.ts';
import { type TinyModel, writeTinyModel } from '../helpers/models/tiny-model.ts';
import { agentCases, taskToFix } from '../helpers/rollouts/agent-cases.ts';
import { startS3Server } from '../helpers/store/s3-server.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

const limitMs = 240_000;
const names = ['left', 'right'] as const;
type Name = (typeof names)[number];
type Started = ReturnType<ReturnType<typeof cliOn>['start']>;
const other = (name: Name): Name => (name === 'left' ? 'right' : 'left');
const [{ agent, calls }] = agentCases as [(typeof agentCases)[number]];

/** Two hosts that share their journals, and a provider whose sandboxes outlive both. */
describe('a rollout in a sandbox that outlives its host', () => {
  let root: string;
  let server: TestServer;
  let s3: Awaited<ReturnType<typeof startS3Server>>;
  let place: S3Place;
  let provider: E2bServer;
  let vllm: ScriptedServer;
  let model: TinyModel;
  let state: StackState;
  let control: ReturnType<typeof cliOn>;
  const running = new Map<Name, readonly [gateway: Started, worker: Started]>();
  const processes: Started[] = [];
  /** The prompts that were asked for, in order; the n-th gets the n-th call of the agent. */
  const prompts: string[] = [];
  /** The requests for the second turn that wait for the test's answer, in order. */
  let held: PromiseWithResolvers<void>[] = [];

  before(async () => {
    [s3, server, root, model] = [
      await startS3Server(),
      await startTestServer(),
      await mkdtemp(join(tmpdir(), 'temper-adopt-')),
      await writeTinyModel(),
    ];
    place = s3.place();
    const { tokens } = await loadModel(model.dir);
    vllm = await startScriptedVllm(async (ids) => {
      const prompt = ids.join();
      if (!prompts.includes(prompt)) prompts.push(prompt);
      const turn = prompts.indexOf(prompt);
      if (turn === 1) {
        const answer = Promise.withResolvers<void>();
        held.push(answer);
        await answer.promise;
      }
      return tokens.encode(`<tool_call>\n${JSON.stringify(calls[turn])}\n</tool_call><|im_end|>`);
    });
    const image = 'temper-tasks:bookworm';
    const programs = [await createRuntime({ cacheDir: cacheDirectory(process.env) }).prepare()];
    const template = { image, cpuCount: 2, memoryMB: 8_192, programs };
    provider = await startE2bServer({ templates: { [templateNameOf(image)]: template } });
    const config = readConfig({ ...process.env, ...settingsOf('control') });
    state = await openState(config);
    control = cliOn(join(root, 'control'), server, settingsOf('control'));
    processes.push(control.start('worker', 'control'));
    await Promise.all([
      ...names.map(startHost),
      until(async () => (await pollers(server.client, controlQueue, 'workflow')).length > 0, limitMs),
    ]);
  });
  after(async () => {
    for (const { process } of processes) process.kill('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended));
    await provider?.close();
    await vllm?.close();
    await s3?.close();
    await server?.close();
    await model?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  function settingsOf(home: Name | 'control'): Record<string, string> {
    const { bucket, prefix } = place;
    return {
      ...s3.env,
      TEMPER_HOME: join(root, home),
      TEMPER_STORE: `s3://${bucket}/${prefix}`,
      TEMPER_STORE_ENDPOINT: s3.url,
      TEMPER_STACK_KEY: '7'.repeat(64),
      TEMPER_HOST: home,
      TEMPER_HOST_LOST_AFTER: '30',
      TEMPER_JOURNALS: join(root, 'journals'),
      TEMPER_ENGINE_URLS: vllm.url,
      TEMPER_MODEL_DIR: model.dir,
      TEMPER_E2B_URL: provider.url,
      E2B_API_KEY: provider.key,
      XDG_CACHE_HOME: join(cacheDirectory(process.env), '..'),
    };
  }

  async function startHost(name: Name): Promise<void> {
    const config = readConfig({ ...process.env, ...settingsOf(name) });
    const host = cliOn(config.home, server, settingsOf(name));
    const both = [host.start('gateway'), host.start('worker', 'host')] as const;
    processes.push(...both);
    running.set(name, both);
    await untilSocketAnswers(socketOf(config.paths.gatewaySockets.control, 'gateway'), AbortSignal.timeout(limitMs));
    const polls = until(async () => {
      const found = await pollers(server.client, hostQueue(name), 'activity');
      return found.some((identity) => identity.startsWith(`${both[1].process.pid}@`));
    }, limitMs);
    const ended = both[1].ended.then(({ stdout, stderr }) => assert.fail(`host ${name} ended: ${stdout}${stderr}`));
    await Promise.race([polls, ended]);
    ended.catch(() => undefined);
  }

  const signal = (name: Name, what: NodeJS.Signals): void => {
    for (const { process } of running.get(name) ?? []) process.kill(what);
  };
  async function forget(name: Name): Promise<void> {
    const { code, stderr } = await control.run('host', 'forget', name, '--yes', '--force');
    assert.equal(code, 0, stderr);
  }

  /** Starts a rollout, and waits until its agent waits for its second turn. */
  async function startRollout(workflowId: string) {
    held = [];
    const handle = await server.client.workflow.start('rollout', {
      taskQueue: controlQueue,
      workflowId,
      args: [{ task: taskToFix, agent, sandbox: 'e2b', sampling: { maxTokensPerTurn: 2_000 } }],
    });
    await until(() => held.length === 1, limitMs);
    const status = () => handle.query(rolloutStatusQuery);
    const placedOn = (await status()).host;
    const host = names.find((name) => name === placedOn) ?? assert.fail(`expected one of the hosts, got ${placedOn}`);
    const result = async (): Promise<RolloutResult> => (await handle.result()) as RolloutResult;
    const epoch = { rollout: handle.firstExecutionRunId, epoch: 1 };
    return { host, status, result, epoch, sandbox: agentSandboxName(epoch) };
  }
  const adoptedBy = (rollout: Awaited<ReturnType<typeof startRollout>>, host: Name): Promise<unknown> =>
    until(async () => {
      const { epoch, host: now } = await rollout.status();
      assert.equal(epoch, 1, 'the rollout began again');
      return now === host && held.length === 2;
    }, limitMs);

  /** Asserts that the rollout was scored by the work in its first sandbox, and that its trace has each turn once. */
  async function assertUnbroken(result: RolloutResult): Promise<void> {
    const { outcome, reward, stop, epochs, adoptions, trace } = result;
    assert.deepEqual([outcome, reward, stop, epochs, adoptions], ['scored', 1, 'submitted', 1, 1], said(result));
    assert.ok(trace !== null);
    const { turns, segments } = (await state.blobs.getJson(trace.trace.digest)) as Trace;
    assert.deepEqual(
      turns.map(({ index, parent }) => [index, parent]),
      calls.map((_, index) => [index, index === 0 ? null : index - 1]),
    );
    assert.equal(segments.length, 1);
    assert.deepEqual([trace.engineFailures, trace.gatewayFailures, trace.cutOff], [0, undefined, undefined]);
  }
  const said = (result: RolloutResult): string => JSON.stringify(result);
  const noSandboxLeft = (): Promise<unknown> => until(() => provider.ids().length === 0, limitMs);

  it('continues on another host when its own was only cut off, which then does nothing more', async () => {
    const rollout = await startRollout('paused');
    const [lost, adopter] = [rollout.host, other(rollout.host)];
    signal(lost, 'SIGSTOP');
    await forget(lost);
    await adoptedBy(rollout, adopter);
    const journal = join(root, 'journals', lost, `${sessionId(rollout.epoch)}.jsonl`);
    const before = await readFile(journal, 'utf8');
    signal(lost, 'SIGCONT');
    held[0]?.resolve();
    const [, worker] = running.get(lost) ?? [];
    const ended = await worker?.ended;
    assert.equal(ended?.code, 1);
    assert.match(ended?.stderr ?? '', new RegExp(`host ${lost}/1 was declared lost`));
    assert.equal(await readFile(journal, 'utf8'), before);
    assert.equal(provider.ids(rollout.sandbox).length, 1);
    // It comes back as another generation, and finds the sandbox of its earlier life.
    signal(lost, 'SIGKILL');
    await startHost(lost);
    held[1]?.resolve();
    await assertUnbroken(await rollout.result());
    await noSandboxLeft();
  });

  it('continues on another host when its own is gone', async () => {
    const rollout = await startRollout('killed');
    signal(rollout.host, 'SIGKILL');
    await forget(rollout.host);
    await adoptedBy(rollout, other(rollout.host));
    held[1]?.resolve();
    await assertUnbroken(await rollout.result());
    await noSandboxLeft();
    await startHost(rollout.host);
  });

  it('begins again, and says why, when the journals are gone, too', async () => {
    const rollout = await startRollout('disk-lost');
    signal(rollout.host, 'SIGKILL');
    await rm(join(root, 'journals', rollout.host), { recursive: true });
    await forget(rollout.host);
    await until(() => held.length === 2, limitMs);
    held[1]?.resolve();
    const result = await rollout.result();
    assert.deepEqual([result.outcome, result.reward, result.epochs, result.adoptions], ['scored', 1, 2, undefined]);
    assert.match(said(result), new RegExp(`finds no journal that host ${rollout.host} has left`));
  });
});
