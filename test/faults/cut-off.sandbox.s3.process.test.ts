import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGatewayControl, type GatewayControlClient } from '../../infra/gateway/client.ts';
import { secretOf } from '../../infra/gateway/secret.ts';
import { socketOf } from '../../infra/gateway/sockets.ts';
import { createLease, type Lease } from '../../infra/hosts/lease.ts';
import { declareLost } from '../../infra/hosts/orders.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxInfo } from '../../infra/sandbox/sandbox.ts';
import { type Config, readConfig } from '../../infra/settings/config.ts';
import { openStackKeys } from '../../infra/stack.ts';
import { pollers } from '../../infra/temporal/pollers.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { openState, type StackState } from '../../workers/open-state.ts';
import { untilHttpAnswers, untilSocketAnswers } from '../../workers/up/ready.ts';
import type { TemperFailure } from '../../workflows/contracts/failures.ts';
import { controlQueue, hostQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type CliRun, cliOn } from '../helpers/cli.ts';
import { openSession, type Reply, sendTo } from '../helpers/gateway/gateway.ts';
import { readJournalText } from '../helpers/gateway/journal-text.ts';
import { createSleepingAgents, type SleepingAgents } from '../helpers/rollouts/sleeping-agents.ts';
import { type CutProxy, startCutProxy } from '../helpers/store/cut-proxy.ts';
import { startS3Server } from '../helpers/store/s3-server.ts';
import { isPolledBy } from '../helpers/temporal/polled-by.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

const name = 'cut-off';
const limitMs = 240_000;
const body = (text: string) => ({ messages: [{ role: 'user', content: text }], max_tokens: 4 });

describe('a host that is cut off from the store', () => {
  let home: string;
  let server: TestServer;
  let s3: Awaited<ReturnType<typeof startS3Server>>;
  let proxy: CutProxy;
  let config: Config;
  let state: StackState;
  let lease: Lease;
  let control: GatewayControlClient;
  let agents: SleepingAgents;
  let key: Buffer;
  let sandboxes: () => Promise<readonly SandboxInfo[]>;
  let start: (...args: readonly string[]) => Running;
  let settings: Readonly<Record<string, string>>;
  const processes: Running[] = [];
  type Running = ReturnType<ReturnType<typeof cliOn>['start']>;

  before(async () => {
    [s3, server, home] = [await startS3Server(), await startTestServer(), await mkdtemp(join(tmpdir(), 'temper-cut-'))];
    proxy = await startCutProxy(s3.url);
    agents = await createSleepingAgents(join(home, 'tasks'));
    const { bucket, prefix } = s3.place();
    const shared = {
      ...s3.env,
      TEMPER_STORE: `s3://${bucket}/${prefix}`,
      TEMPER_HOST: name,
      TEMPER_HOST_LOST_AFTER: '15',
      TEMPER_SANDBOX: 'local',
      TEMPER_POLICY_PORT: String(await freePort()),
      TEMPER_TASK_ROOTS: join(home, 'tasks'),
      XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache'),
    };
    settings = { ...shared, TEMPER_STORE_ENDPOINT: s3.url };
    const cut = { ...shared, TEMPER_STORE_ENDPOINT: proxy.url };
    config = readConfig({ ...process.env, ...settings, TEMPER_HOME: home });
    state = await openState(config);
    [key] = await openStackKeys(config, state.objects);
    const provider = createLocalProvider({ root: config.paths.sandboxes, stack: state.stack });
    sandboxes = () => provider.list(state.stack);
    lease = createLease({ path: config.paths.lease, host: config.host, hosts: state.hosts, storeIsLocal: false });
    control = createGatewayControl([socketOf(config.paths.gatewaySockets.control, 'gateway')]);
    start = (...args) => {
      const isOfHost = args.includes('host') || args.includes('gateway');
      const started = cliOn(home, server, isOfHost ? cut : settings).start(...args);
      processes.push(started);
      return started;
    };
    start('policy');
    start('gateway');
    start('worker', 'control');
    const signal = AbortSignal.timeout(limitMs);
    await untilHttpAnswers(`http://127.0.0.1:${config.policyPort}/health`, signal);
    await untilSocketAnswers(socketOf(config.paths.gatewaySockets.control, 'gateway'), signal);
    await until(async () => (await pollers(server.client, controlQueue, 'workflow')).length > 0, limitMs);
  });
  after(async () => {
    for (const { process } of processes) process.kill('SIGTERM');
    await Promise.all(processes.map(({ ended }) => ended));
    await control?.end();
    await proxy?.close();
    await s3?.close();
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  const startHost = async (): Promise<Running> => {
    const host = start('worker', 'host');
    const ended = host.ended.then(({ code, stdout }) => {
      throw new Error(`the host worker ended with exit code ${code}: ${stdout}`);
    });
    const polls = until(async () => {
      const isPolled = await isPolledBy(server.client, hostQueue(name), host.process.pid);
      return isPolled && lease.now().state === 'valid';
    }, limitMs);
    await Promise.race([polls, ended]);
    ended.catch(() => undefined);
    return host;
  };
  const chat = (session: string, text: string): Promise<Reply> =>
    sendTo(socketOf(config.paths.gatewaySockets.agents, 'gateway'), {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${secretOf(key, session)}`, 'content-type': 'application/json' },
      body: JSON.stringify(body(text)),
    });
  const journalOf = (session: string): Promise<string> =>
    readJournalText(join(config.paths.journals, `${session}.jsonl`));
  const untilExpired = (): Promise<true> => until(() => lease.now().state === 'expired', limitMs);
  const rolloutOf = (workflowId: string) =>
    server.client.workflow.start('rollout', {
      workflowId,
      taskQueue: controlQueue,
      args: [{ task: agents.task, agent: 'oracle', sandbox: 'local' }],
    });
  /** Starts a second host, which reaches the store by another way, and returns the function that lists its sandboxes. */
  const startOther = async (): Promise<typeof sandboxes> => {
    const own = {
      ...settings,
      TEMPER_HOST: 'other',
      TEMPER_HOME: await mkdtemp(join(home, 'other-')),
      TEMPER_STACK_KEY_FILE: config.paths.stackKey,
    };
    const cli = cliOn(own.TEMPER_HOME, server, own);
    const worker = cli.start('worker', 'host');
    processes.push(cli.start('gateway'), worker);
    await until(() => isPolledBy(server.client, hostQueue('other'), worker.process.pid), limitMs);
    const { paths } = readConfig({ ...process.env, ...own });
    const provider = createLocalProvider({ root: paths.sandboxes, stack: state.stack });
    return () => provider.list(state.stack);
  };
  let host: Running;

  it('answers the turns that waited when it is back in time, and wrote nothing meanwhile', async () => {
    host = await startHost();
    // On a busy machine a lease this short may run out before its renewal.
    await until(() => control.open(openSession('kept.1')).catch(() => null), limitMs);
    assert.equal((await chat('kept.1', 'one')).status, 200);
    proxy.cut();
    await untilExpired();
    const before = await journalOf('kept.1');
    const waiting = chat('kept.1', 'two');
    await assert.rejects(control.close('kept.1'), { type: 'HostFenced' });
    await assert.rejects(control.open(openSession('kept.2')), { type: 'HostFenced' });
    assert.equal(await journalOf('kept.1'), before);
    const healedAt = Date.now();
    proxy.heal();
    assert.equal((await waiting).status, 200);
    const turn = JSON.parse((await journalOf('kept.1')).trim().split('\n').at(-1) ?? '');
    assert.ok(turn.record.turn.endedAt >= healedAt);
    await until(() => lease.now().state === 'valid', limitMs);
    assert.equal(lease.now().token, `${name}/1`);
  });

  it('is fenced for ever if it was declared lost meanwhile, and starts afresh', async () => {
    const rollout = await rolloutOf('moves-on');
    await agents.untilAsleep(1, AbortSignal.timeout(limitMs));
    assert.deepEqual(
      (await sandboxes()).map(({ labels }) => labels.fence),
      [`${name}/1`],
    );
    proxy.cut();
    await untilExpired();
    const before = await journalOf('kept.1');
    const waiting = chat('kept.1', 'three');
    await declareLost(state.hosts, name, { generation: 1, reason: 'test' });
    proxy.heal();
    const ended: CliRun = await host.ended;
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, /host cut-off\/1 was declared lost/);
    assert.equal((await waiting).status, 503);

    host = await startHost();
    assert.equal(lease.now().token, `${name}/2`);
    assert.equal((await chat('kept.1', 'four')).status, 503);
    // While a lease this short has run out, it is refused for that.
    await until(async () => {
      const sealed = control.seal('kept.1').then(() => assert.fail('it was sealed'));
      const { type } = await sealed.catch((error: TemperFailure) => error);
      assert.ok(type === 'HostLost' || type === 'HostFenced', String(type));
      return type === 'HostLost';
    }, limitMs);
    assert.equal(await journalOf('kept.1'), before);
    await until(() => control.open(openSession('fresh.1')).catch(() => null), limitMs);
    assert.equal((await chat('fresh.1', 'one')).status, 200);

    await until(async () => {
      const labels = (await sandboxes()).map((sandbox) => sandbox.labels);
      return labels.length === 1 && labels.every(({ fence, epoch }) => fence === `${name}/2` && epoch === 2);
    }, limitMs);
    await agents.untilAsleep(1, AbortSignal.timeout(limitMs));
    assert.equal(agents.wake(), 1);
    const { outcome, reward, epochs } = (await rollout.result()) as RolloutResult;
    assert.deepEqual([outcome, reward, epochs], ['scored', 1, 2]);
  });

  it('does nothing while another host has its rollout, and removes what it held when it is back', async () => {
    const rollout = await rolloutOf('taken-over');
    await agents.untilAsleep(1, AbortSignal.timeout(limitMs));
    const held = await sandboxes();
    assert.deepEqual(
      held.map(({ labels }) => labels.fence),
      [`${name}/2`],
    );
    const sandboxesOfOther = await startOther();
    proxy.cut();
    await untilExpired();
    const forgotten = await cliOn(home, server, settings).run('host', 'forget', name, '--yes', '--force');
    assert.equal(forgotten.code, 0, forgotten.stderr);
    // One on each host.
    await agents.untilAsleep(2, AbortSignal.timeout(limitMs));
    assert.deepEqual(
      (await sandboxesOfOther()).map(({ labels }) => [labels.fence, labels.epoch]),
      [['other/1', 2]],
    );
    assert.equal(agents.wake(), 2);
    const late = sleep(limitMs, undefined, { ref: false }).then(() => assert.fail('the rollout did not end'));
    const { outcome, reward, epochs } = (await Promise.race([rollout.result(), late])) as RolloutResult;
    assert.deepEqual([outcome, reward, epochs], ['scored', 1, 2]);
    // The host could not even remove what its agent left.
    assert.deepEqual(
      (await sandboxes()).map((one) => one.name),
      held.map((one) => one.name),
    );
    proxy.heal();
    const ended: CliRun = await host.ended;
    assert.match(ended.stderr, /host cut-off\/2 was declared lost/);
    host = await startHost();
    assert.equal(lease.now().token, `${name}/3`);
    await until(async () => (await sandboxes()).length === 0, limitMs);
  });
});
