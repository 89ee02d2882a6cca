/**
 * Measures what the egress proxy adds to a connection, and what it carries: a client on this machine without and with the proxy,
 * and one in a Docker container, whose connections the relay carries to it. This process is the proxy; a process of its own is
 * the server. Run it on an idle machine.
 */
import { execFile, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { networkVariables } from '../../infra/agents/network-variables.ts';
import { egressDirectory, egressVariable } from '../../infra/agents/relay/protocol.ts';
import { throughEgress } from '../../infra/agents/relay.ts';
import { createRuntime, runtimeTarget } from '../../infra/agents/runtime.ts';
import { createEgressPlaces } from '../../infra/egress/places.ts';
import { createEgressProxy, type EgressProxy } from '../../infra/egress/proxy.ts';
import { listenForSession } from '../../infra/gateway/session-socket.ts';
import { cacheDirectory } from '../../infra/process/cache.mjs';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { createCertificate } from '../helpers/certificate.ts';
import { loopbackNetwork, ownAddress, portOf } from '../helpers/egress/loopback-network.ts';
import { interruptible } from './interruptible.ts';

const name = 'bench.test';
/** The ways take turns, so that other work on the machine hits all alike. */
const rounds = 3;
const limitMs = 600_000;
const client = join(import.meta.dirname, 'egress/client.ts');

interface Options {
  readonly requests: number;
  readonly megabytes: number;
}

await new Command('npm run bench:egress --')
  .description('Measures the egress proxy beside a direct connection. Run it on an idle machine.')
  .option('--requests <n>', 'connections per round and way', wholeNumber(10, 5_000), 200)
  .option('--megabytes <n>', 'size of the large reply', wholeNumber(1, 2_000), 256)
  .action((options: Options) => interruptible('stopping the server and removing the sandbox', () => main(options)))
  .parseAsync();

async function main({ requests, megabytes }: Options): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  const server = fork(join(import.meta.dirname, 'egress/server.ts'), [JSON.stringify(await createCertificate(name))]);
  try {
    const [serverPort]: unknown[] = await once(server, 'message');
    const port = Number(serverPort);
    const proxy = createEgressProxy({
      policy: { mode: 'allowlist', hosts: [name], ports: [port] },
      phase: 'agent',
      network: loopbackNetwork({ [name]: [ownAddress] }),
    });
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, proxy.serve).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const args = [`${ownAddress}:${port}`, name, String(requests), String(megabytes * 2 ** 20)];
    const ways = {
      direct: () => onHost(['direct', ...args]),
      proxy: () => onHost([`127.0.0.1:${portOf(listener)}`, ...args]),
      'container and proxy': () => inContainer(home, proxy, args),
    };
    const measured = new Map<string, Measured[]>();
    for (let round = 0; round < rounds; round += 1) {
      for (const [way, measure] of Object.entries(ways)) {
        measured.set(way, [...(measured.get(way) ?? []), await measure()]);
      }
    }
    console.log('way                   connection p50 ms   p99 ms   MB/s');
    for (const [way, all] of measured) print(way, all);
    proxy.close();
    listener.close();
  } finally {
    server.kill();
    await rm(home, { recursive: true, force: true });
  }
}

interface Measured {
  readonly times: readonly number[];
  readonly megabytesPerSec: number;
}

function parse(output: string): Measured {
  return JSON.parse(output);
}

async function onHost(args: readonly string[]): Promise<Measured> {
  return parse((await promisify(execFile)(process.execPath, [client, ...args], { maxBuffer: 2 ** 24 })).stdout);
}

/** Runs the client in a container without a network, through the relay. */
async function inContainer(home: string, proxy: EgressProxy, args: readonly string[]): Promise<Measured> {
  const sandboxName = `bench-egress-${randomUUID()}`;
  const provider = createDockerProvider({ stack: 'bench' });
  const places = createEgressPlaces(join(home, 'egress'));
  const { signal } = new AbortController();
  const mounts = [
    await createRuntime({ cacheDir: cacheDirectory(process.env) }).prepare(),
    { source: await places.make(sandboxName), target: egressDirectory, readOnly: true },
    { source: import.meta.dirname, target: '/bench', readOnly: true },
  ] as const;
  const socket = await listenForSession({
    path: places.socketOf(sandboxName),
    onConnection: proxy.serve,
    onError: (error) => console.error(error),
  });
  try {
    const epoch = { run: 'bench', rollout: sandboxName, epoch: 1, purpose: 'agent' } as const;
    const labels = { stack: 'bench', ...epoch, expiresAtMs: Date.now() + limitMs };
    const limits = { cpus: 2, memoryMb: 1024, diskMb: 64, pids: 256, workdir: '/workspace' };
    const image = 'temper-tasks:bookworm';
    const sandbox = await provider.ensure({ name: sandboxName, image, labels, ...limits, mounts }, signal);
    const address = networkVariables[egressVariable] ?? '';
    const command = ['/bin/sh', `${runtimeTarget}/bin/run`, '/bench/egress/client.ts', address, ...args];
    const [program = '', ...rest] = throughEgress(command);
    const request = { account: 'agent', argv: [program, ...rest], env: networkVariables } as const;
    const bounded = { timeoutMs: limitMs, maxOutputBytes: 2 ** 24 };
    const { exitCode, stdout, stderr } = await sandbox.exec({ ...request, ...bounded }, signal);
    if (exitCode !== 0) throw new Error(`the client in the container ended with ${exitCode}: ${stderr}`);
    return parse(stdout.toString());
  } finally {
    await provider.remove(sandboxName);
    await provider.close();
    socket.close();
    await places.remove(sandboxName);
  }
}

function print(way: string, all: readonly Measured[]): void {
  const times = all.flatMap((one) => one.times).sort((a, b) => a - b);
  const at = (part: number): string => (times[Math.floor((times.length - 1) * part)] ?? 0).toFixed(2);
  const rates = all.map(({ megabytesPerSec }) => megabytesPerSec).sort((a, b) => a - b);
  const rate = (rates[Math.floor(rates.length / 2)] ?? 0).toFixed(0);
  console.log(`${way.padEnd(22)}${at(0.5).padStart(17)}${at(0.99).padStart(9)}${rate.padStart(7)}`);
}
