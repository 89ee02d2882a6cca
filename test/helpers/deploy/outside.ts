import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { freePort } from '../../../infra/temporal/ports.ts';
import { untilHttpAnswers } from '../../../workers/up/ready.ts';
import { createCertificate } from '../certificate.ts';
import { repositoryRoot } from '../sources.ts';
import { startS3Server, testBucket } from '../store/s3-server.ts';
import { createNamespace } from '../temporal/production/namespace.ts';
import { startProductionServer } from '../temporal/production/server.ts';

/** The services that a stack in a cluster needs and that are not in it: they run on this machine, and Pods reach them. */
export interface Outside extends AsyncDisposable {
  readonly temporal: string;
  readonly namespace: string;
  readonly store: { readonly address: string; readonly endpoint: string };
  readonly policy: string;
  /** Stops the policy server, so that agents wait for it, or has it continue. */
  signalPolicy(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** The directory of checkpoints on this machine, as the policy server sees it. */
  readonly checkpoints: string;
  readonly storeKeys: Readonly<Record<string, string>>;
  readonly policyKeys: Readonly<Record<string, string>>;
  /** The certificate of the policy server, which is its own authority, as PEM. */
  readonly policyCertificate: string;
}

/** Starts PostgreSQL, Temporal, an S3 server and the policy server, where the node of a cluster reaches them. */
export async function startOutside(node: string): Promise<Outside> {
  await using undo = new AsyncDisposableStack();
  const address = await addressTowards(node);
  const server = await startProductionServer();
  undo.defer(() => server.close());
  const namespace = 'temper';
  const access = { tls: false, apiKey: undefined, metadata: {} } as const;
  const created = createNamespace({ address: server.address, namespace, ...access });
  const s3 = await startS3Server();
  undo.defer(() => s3.close());
  const policyKeys = { TEMPER_ENGINE_API_KEY: secret(), TEMPER_TRAINER_API_KEY: secret() };
  const policy = await startPolicy(address, policyKeys);
  undo.defer(policy.close);
  const temporal = undo.use(await forward(address, server.address));
  const store = undo.use(await forward(address, new URL(s3.url).host));
  await created;
  const steps = undo.move();
  return {
    temporal: temporal.at,
    namespace,
    store: { address: `s3://${testBucket}/stack`, endpoint: `http://${store.at}` },
    policy: policy.url,
    signalPolicy: policy.signal,
    checkpoints: policy.checkpoints,
    storeKeys: s3.env,
    policyKeys,
    policyCertificate: policy.certificate,
    [Symbol.asyncDispose]: () => steps.disposeAsync(),
  };
}

const secret = (): string => randomBytes(16).toString('hex');

/** Returns the address of this machine that another one sees. Sends nothing. */
async function addressTowards(other: string): Promise<string> {
  const socket = createSocket('udp4');
  socket.connect(1, other);
  await once(socket, 'connect');
  const { address } = socket.address();
  socket.close();
  return address;
}

/** Passes connections to an address of this machine on to a server on the loopback address. */
async function forward(address: string, to: string): Promise<AsyncDisposable & { readonly at: string }> {
  const { hostname, port } = new URL(`tcp://${to}`);
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    open.add(near);
    near.on('close', () => open.delete(near));
    // An error of one side ends both.
    pipeline(near, far, near, () => undefined);
  });
  await once(server.listen(0, address), 'listening');
  return {
    at: `${address}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function startPolicy(address: string, keys: Outside['policyKeys']) {
  const home = await mkdtemp(join(tmpdir(), 'temper-policy-'));
  const checkpoints = join(home, 'policy/checkpoints');
  await mkdir(checkpoints, { recursive: true });
  const port = await freePort();
  const url = `https://${address}:${port}`;
  const { cert, key } = await createCertificate(address);
  const files = { TEMPER_LISTEN_CERT: join(home, 'tls.crt'), TEMPER_LISTEN_KEY: join(home, 'tls.key') };
  await writeFile(files.TEMPER_LISTEN_CERT, cert);
  await writeFile(files.TEMPER_LISTEN_KEY, key, { mode: 0o600 });
  const settings = { ...files, TEMPER_HOME: home, TEMPER_LISTEN: address, TEMPER_POLICY_PORT: String(port) };
  const child: ChildProcess = spawn(process.execPath, [join(repositoryRoot, 'workers/cli.ts'), 'policy'], {
    env: { ...process.env, ...settings, ...keys },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(child, 'exit');
  const close = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    await rm(home, { recursive: true, force: true });
  };
  try {
    await untilHttpAnswers(`${url}/health`, AbortSignal.timeout(60_000));
  } catch (error) {
    await close();
    throw error;
  }
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => void child.kill(name);
  return { url, checkpoints, certificate: cert, signal, close };
}
