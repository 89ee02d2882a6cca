import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readConfig } from '../../infra/settings/config.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import type { PartName } from '../../workers/up/part.ts';
import { type RunningStack, startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { createSleepingAgents } from '../helpers/rollouts/sleeping-agents.ts';
import {
  type Authority,
  createAuthority,
  type KeyPair,
  serverName,
  startKeyIssuer,
} from '../helpers/temporal/production/credentials.ts';
import { createNamespace } from '../helpers/temporal/production/namespace.ts';
import { type ProductionServer, startProductionServer } from '../helpers/temporal/production/server.ts';
import { until as untilWithin } from '../helpers/until.ts';

const namespace = 'secured';
const limitMs = 240_000;
const until = <Seen>(look: () => Seen | Promise<Seen>) => untilWithin(look, limitMs);
const workers: readonly PartName[] = ['control', 'host'];

/**
 * A stack on a server that demands a client certificate and an API key. The certificate is replaced by one of another authority
 * while an agent works; then the server trusts the other authority alone, as when the old certificate has expired.
 */
describe('a stack whose client certificate is replaced', () => {
  const undo = new AsyncDisposableStack();
  let server: ProductionServer;
  let stack: RunningStack;
  let pids: Readonly<Record<'before' | 'half' | 'after' | 'again', readonly (number | null)[]>>;
  let result: RolloutResult;

  before(async () => {
    const root = await mkdtemp(join(tmpdir(), 'temper-replaced-'));
    undo.defer(() => rm(root, { recursive: true, force: true }));
    const file = (name: string): string => join(root, name);
    const old = undo.use(await createAuthority());
    const other = undo.use(await createAuthority());
    const issuer = undo.use(await startKeyIssuer());
    const trusted = file('trusted.pem');
    const trust = async (...authorities: readonly Authority[]): Promise<void> =>
      writeFile(trusted, (await Promise.all(authorities.map(({ caFile }) => readFile(caFile, 'utf8')))).join(''));
    await trust(old, other);
    const tls = { ...old.server, caFile: old.caFile, clientCaFile: trusted, requireClient: true, serverName };
    server = await startProductionServer({ tls, keys: issuer.keys });
    undo.defer(() => server.close());

    const use = async ({ certFile, keyFile }: KeyPair): Promise<void> => {
      await copyFile(certFile, file('client.pem'));
      await copyFile(keyFile, file('client.key'));
    };
    await use(old.client);
    const env = {
      ...process.env,
      TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_API_KEY: issuer.issue('temporal-system:admin', `${namespace}:admin`),
      TEMPORAL_TLS_SERVER_NAME: serverName,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: old.caFile,
      TEMPORAL_TLS_CLIENT_CERT_PATH: file('client.pem'),
      TEMPORAL_TLS_CLIENT_KEY_PATH: file('client.key'),
      TEMPER_HOME: file('home'),
      TEMPER_SANDBOX: 'local',
      TEMPER_TASK_ROOTS: file('tasks'),
      TEMPER_POLICY_PORT: String(await freePort()),
    };
    const config = readConfig(env);
    await createNamespace(temporalTarget(config));
    stack = await startStack({ config, parts: ['gateway', ...workers] }, AbortSignal.timeout(limitMs));
    undo.defer(() => stack.close());
    const agents = await createSleepingAgents(file('tasks'));
    const connect = () => connectClient(temporalTarget(config));
    const start = { taskQueue: controlQueue, workflowId: 'over-the-change' };
    const request = { task: agents.task, agent: 'oracle', sandbox: 'local' };
    const first = await connect();
    await first.client.workflow.start('rollout', { ...start, args: [request] });
    await first.close();
    await agents.untilAsleep(1, AbortSignal.timeout(limitMs));

    const atFirst = pidsOfWorkers();
    // A certificate without its key cannot be used, and ends nothing.
    await copyFile(other.client.certFile, file('client.pem'));
    await until(async () =>
      (await logOf('host')).includes('new credentials for the Temporal server cannot be used yet'),
    );
    const half = pidsOfWorkers();
    await use(other.client);
    const allAreOthers = () => pidsOfWorkers().every((pid, index) => pid !== null && pid !== atFirst[index]);
    await until(allAreOthers);
    pids = { before: atFirst, half, after: pidsOfWorkers(), again: [] };

    // The old certificate does not count any more, and a worker has to be started again.
    await trust(other);
    await server.crash();
    await server.start();
    const [control = null] = pids.after;
    if (control !== null) process.kill(control, 'SIGKILL');
    await until(() => pidsOfWorkers()[0] !== control && pidsOfWorkers().every((pid) => pid !== null));
    pids = { ...pids, again: pidsOfWorkers() };
    await until(() => agents.wake() > 0);
    const last = await until(() => connect().catch(() => null));
    result = await last.client.workflow.getHandle(start.workflowId).result();
    await last.close();

    async function logOf(part: PartName): Promise<string> {
      return readFile(join(config.paths.logs, `${part}.log`), 'utf8');
    }
  });
  after(() => undo.disposeAsync());

  /** The processes of the workers, each of which works; null: it does not. */
  function pidsOfWorkers(): readonly (number | null)[] {
    const parts = new Map(stack.parts().map((part) => [part.name, part.state === 'running' ? part.pid : null]));
    return workers.map((name) => parts.get(name) ?? null);
  }

  it('starts its workers again once the certificate and its key are there', () => {
    assert.deepEqual(pids.half, pids.before);
    for (const [index, pid] of pids.after.entries()) assert.notEqual(pid, pids.before[index]);
  });

  it('starts a worker again when the old certificate does not count any more', () => {
    assert.notEqual(pids.again[0], pids.after[0]);
  });

  it('loses no work of the agent', () => {
    const { outcome, reward, epochs } = result;
    assert.deepEqual([outcome, reward, epochs], ['scored', 1, 1], JSON.stringify(result));
  });
});
