import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { socketOf } from '../../infra/gateway/sockets.ts';
import { loadModel } from '../../infra/kits/chat-tokens/index.ts';
import { cacheDirectory } from '../../infra/process/cache.mjs';
import { readConfig } from '../../infra/settings/config.ts';
import { pollers } from '../../infra/temporal/pollers.ts';
import { openState } from '../../workers/open-state.ts';
import { untilSocketAnswers } from '../../workers/up/ready.ts';
import { agentSandboxName } from '../../workflows/contracts/ids.ts';
import { rolloutStatusQuery } from '../../workflows/contracts/messages.ts';
import { controlQueue, hostQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Trace } from '../../workflows/contracts/trace.ts';
import { cliOn } from '../helpers/cli.ts';
import { startScriptedVllm } from '../helpers/engine/scripted-vllm.ts';
import { writeTinyModel } from '../helpers/models/tiny-model.ts';
import { agentCases, taskToFix } from '../helpers/rollouts/agent-cases.ts';
import { startS3Server } from '../helpers/store/s3-server.ts';
import { isPolledBy } from '../helpers/temporal/polled-by.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

export const limitMs = 240_000;
const agentTimeoutSec = (3 * limitMs) / 1000;
const names = ['left', 'right'] as const;
export type Name = (typeof names)[number];
export const otherThan = (name: Name): Name => (name === 'left' ? 'right' : 'left');

type Started = ReturnType<ReturnType<typeof cliOn>['start']>;
const [{ agent, calls }] = agentCases as [(typeof agentCases)[number]];

/** Sandboxes that outlive their hosts, and the settings with which hosts reach them. */
export interface OutlivingSandboxes {
  readonly sandbox: SandboxKind;
  readonly settings: Readonly<Record<string, string>>;
}

export type TwoHosts = Awaited<ReturnType<typeof startTwoHosts>>;

/** Starts two hosts that share their journals, and a control worker. */
export async function startTwoHosts({ sandbox, settings }: OutlivingSandboxes) {
  await using undo = new AsyncDisposableStack();
  const root = await mkdtemp(join(tmpdir(), 'temper-adopt-'));
  undo.defer(() => rm(root, { recursive: true, force: true }));
  const s3 = await startS3Server();
  undo.defer(() => s3.close());
  const server = await startTestServer();
  undo.defer(() => server.close());
  const model = undo.use(await writeTinyModel());
  const engine = await startEngine(model.dir);
  undo.defer(() => engine.close());
  const processes: Started[] = [];
  undo.defer(async () => {
    for (const { process } of processes) process.kill('SIGKILL');
    await Promise.all(processes.map(({ ended }) => ended));
  });
  const { bucket, prefix } = s3.place();
  const settingsOf = (home: Name | 'control'): Record<string, string> => ({
    ...s3.env,
    TEMPER_HOME: join(root, home),
    TEMPER_STORE: `s3://${bucket}/${prefix}`,
    TEMPER_STORE_ENDPOINT: s3.url,
    TEMPER_STACK_KEY: '7'.repeat(64),
    TEMPER_HOST: home,
    TEMPER_HOST_LOST_AFTER: '30',
    TEMPER_JOURNALS: join(root, 'journals'),
    TEMPER_ENGINE_URLS: engine.url,
    TEMPER_MODEL_DIR: model.dir,
    XDG_CACHE_HOME: join(cacheDirectory(process.env), '..'),
    ...settings,
  });
  const state = await openState(readConfig({ ...process.env, ...settingsOf('control') }));
  const control = cliOn(join(root, 'control'), server, settingsOf('control'));
  processes.push(control.start('worker', 'control'));
  const running = new Map<Name, readonly [gateway: Started, worker: Started]>();

  async function startHost(name: Name): Promise<void> {
    const config = readConfig({ ...process.env, ...settingsOf(name) });
    const host = cliOn(config.home, server, settingsOf(name));
    const both = [host.start('gateway'), host.start('worker', 'host')] as const;
    processes.push(...both);
    running.set(name, both);
    await untilSocketAnswers(socketOf(config.paths.gatewaySockets.control, 'gateway'), AbortSignal.timeout(limitMs));
    const polls = until(() => isPolledBy(server.client, hostQueue(name), both[1].process.pid), limitMs);
    const ended = both[1].ended.then(({ stdout, stderr }) => assert.fail(`host ${name} ended: ${stdout}${stderr}`));
    await Promise.race([polls, ended]);
    ended.catch(() => undefined);
  }

  await Promise.all([
    ...names.map(startHost),
    until(async () => (await pollers(server.client, controlQueue, 'workflow')).length > 0, limitMs),
  ]);

  /** Starts a rollout, and waits until its agent waits for its second turn. */
  async function startRollout(workflowId: string) {
    const waiting = engine.holdSecondTurn();
    const handle = await server.client.workflow.start('rollout', {
      taskQueue: controlQueue,
      workflowId,
      // The agent's time passes while its turn is held and its host is cut off.
      args: [{ task: taskToFix, agent, sandbox, sampling: { maxTokensPerTurn: 2_000 }, agentTimeoutSec }],
    });
    const ended = handle.result().then((result) => assert.fail(`the rollout ended: ${JSON.stringify(result)}`));
    await Promise.race([until(() => waiting.length === 1, limitMs), ended]);
    ended.catch(() => undefined);
    const status = () => handle.query(rolloutStatusQuery);
    const placedOn = (await status()).host;
    const host = names.find((name) => name === placedOn) ?? assert.fail(`expected one of the hosts, got ${placedOn}`);
    const epoch = { rollout: handle.firstExecutionRunId, epoch: 1 };
    return {
      host,
      epoch,
      sandbox: agentSandboxName(epoch),
      /** The requests for the second turn, in order, which the test answers. */
      waiting,
      result: async (): Promise<RolloutResult> => (await handle.result()) as RolloutResult,
      /** Waits until a host has adopted the sandbox, and its agent asks for the second turn again. */
      adoptedBy: (adopter: Name): Promise<unknown> =>
        until(async () => {
          const { epoch: now, host: on } = await status();
          assert.equal(now, 1, 'the rollout began again');
          return on === adopter && waiting.length === 2;
        }, limitMs),
    };
  }

  /** Asserts that the rollout was scored by the work in its first sandbox, and that its trace has each turn once. */
  async function assertUnbroken(result: RolloutResult): Promise<void> {
    const { outcome, reward, stop, epochs, adoptions, trace } = result;
    assert.deepEqual(
      [outcome, reward, stop, epochs, adoptions],
      ['scored', 1, 'submitted', 1, 1],
      JSON.stringify(result),
    );
    assert.ok(trace !== null);
    const { turns, segments } = (await state.blobs.getJson(trace.trace.digest)) as Trace;
    assert.deepEqual(
      turns.map(({ index, parent }) => [index, parent]),
      calls.map((_, index) => [index, index === 0 ? null : index - 1]),
    );
    assert.equal(segments.length, 1);
    assert.deepEqual([trace.engineFailures, trace.gatewayFailures, trace.cutOff], [0, undefined, undefined]);
  }

  const steps = undo.move();
  return {
    journals: join(root, 'journals'),
    startHost,
    startRollout,
    assertUnbroken,
    signal(name: Name, what: NodeJS.Signals): void {
      for (const { process } of running.get(name) ?? []) process.kill(what);
    },
    /** The end of the host's worker, with what it has printed. */
    ended: (name: Name) => running.get(name)?.[1].ended,
    async forget(name: Name): Promise<void> {
      const { code, stderr } = await control.run('host', 'forget', name, '--yes', '--force');
      assert.equal(code, 0, stderr);
    },
    close: () => steps.disposeAsync(),
  };
}

/** Starts an engine that gives the n-th prompt the n-th call of the agent. */
async function startEngine(modelDir: string) {
  const { tokens } = await loadModel(modelDir);
  /** The prompts that were asked for, in order. */
  const prompts: string[] = [];
  let held: PromiseWithResolvers<void>[] = [];
  const { url, close } = await startScriptedVllm(async (ids) => {
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
  const holdSecondTurn = (): PromiseWithResolvers<void>[] => {
    held = [];
    return held;
  };
  return { url, close, holdSecondTurn };
}
