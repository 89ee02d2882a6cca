/**
 * Measures what a turn over a stream takes beside one over a mounted unix socket: the real relay and bridge in Docker containers
 * or Pods, the real gateway process, and an engine that answers at once. A Pod has no mounted socket, so its stream is compared
 * with the socket of a container. This process is the host's end. Run it on an idle machine.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { channelVariable } from '../../infra/agents/relay/protocol.ts';
import { throughRelay } from '../../infra/agents/relay.ts';
import { createRuntime, runtimeTarget } from '../../infra/agents/runtime.ts';
import { createChannels } from '../../infra/gateway/channel/index.ts';
import { secretOf } from '../../infra/gateway/secret.ts';
import { loadModel } from '../../infra/kits/chat-tokens/index.ts';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import type { ChannelKind, PutFiles, Sandbox, SandboxMount, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { readConfigWith } from '../../infra/settings/config.ts';
import { openStackId, openStackKeys } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { replyText } from './gateway/conversation.ts';
import { type GatewayProcess, startGatewayProcess, startZeroEngine } from './gateway/process.ts';
import { interruptible } from './interruptible.ts';

const address = 'http://127.0.0.1:8080';
const kinds: readonly ChannelKind[] = ['socket', 'stream'];
const historiesKb = [4, 64];
/** The kinds take turns, so that other work on the machine hits both alike. */
const rounds = 3;
/** Bytes of a short reply with its headers, as they pass a stream. */
const replyBytes = 1_000;
/** The time between two messages over a stream that is measured alone. */
const pauseMs = 3;
/** Turns at the start of each sandbox, which are not counted: code that is not compiled yet. */
const warmUpTurns = 50;
const hourMs = 3_600_000;
/** The place in a sandbox of the programs that measure. */
const programsDirectory = '/workspace/bench';

await new Command('npm run bench:channel --')
  .description(
    'Measures a turn over a stream beside one over the unix socket of a container. Run it on an idle machine.',
  )
  .addOption(
    new Option('--kind <kind>', 'sandboxes with the stream').choices(['docker', 'kubernetes']).default('docker'),
  )
  .option('--namespace <name>', 'namespace of the Pods', 'default')
  .option('--programs <image>', 'image of programs for the Pods', 'temper-programs:test')
  .option('--turns <n>', 'turns per sandbox', wholeNumber(100, 90_000), 400)
  .action((options: Options) =>
    interruptible('stopping the gateway and removing the sandbox', (signal) =>
      main(options, AbortSignal.any([signal, AbortSignal.timeout(hourMs)])),
    ),
  )
  .parseAsync();

interface Options {
  readonly kind: 'docker' | 'kubernetes';
  readonly namespace: string;
  readonly programs: string;
  readonly turns: number;
}

async function main({ kind: streamed, turns, ...cluster }: Options, signal: AbortSignal): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  const { tokens, stopTokenIds } = await loadModel(readConfigWith({}).modelDir);
  const engine = await startZeroEngine([...tokens.encode(replyText), ...stopTokenIds.slice(0, 1)]);
  const config = readConfigWith({ TEMPER_HOME: home, TEMPER_ENGINE_URLS: engine.url });
  const objects = createDirectory(home);
  const id = await openStackId(config.paths, objects);
  const [key] = await openStackKeys(config, objects);
  const gateway = await startGatewayProcess(config);
  const docker = createDockerProvider({ stack: id });
  const providers: Record<ChannelKind, SandboxProvider> = {
    socket: docker,
    stream: streamed === 'docker' ? docker : createKubernetesProvider({ stack: id, ...cluster, requests: 0.01 }),
  };
  const runtime = await createRuntime({ cacheDir: config.cacheDir }).prepare();
  const mounts: readonly SandboxMount[] = [{ ...runtime, readOnly: true }];
  const files = [await clientFiles()];
  const bench = { stack: id, gateway, providers, mounts, files, sockets: config.paths.gatewaySockets, signal };
  try {
    console.log('history    way        p50 ms   p99 ms   CPU ms of the host');
    for (const historyKb of historiesKb) {
      const measured: Record<ChannelKind, Measured> = {
        socket: { times: [], cpuMs: 0 },
        stream: { times: [], cpuMs: 0 },
      };
      const echoed: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        for (const kind of kinds) {
          const session = `bench-${randomUUID()}`;
          const secret = secretOf(key, session);
          const { times, cpuMs, echoes } = await measure(bench, { kind, session, secret, turns, historyKb });
          measured[kind].times.push(...times);
          measured[kind].cpuMs += cpuMs;
          echoed.push(...echoes);
        }
      }
      for (const kind of kinds) print(historyKb, kind, measured[kind]);
      const added = quantile(measured.stream.times, 0.5) - quantile(measured.socket.times, 0.5);
      const alone = quantile(echoed, 0.5);
      console.log(
        `${historyKb} KB: a turn over the stream takes ${added.toFixed(2)} ms more, and the stream alone ${alone.toFixed(2)} ms (p50)`,
      );
    }
  } finally {
    for (const provider of new Set(Object.values(providers))) await provider.close();
    await gateway.close();
    await engine.close();
    await rm(home, { recursive: true, force: true });
  }
}

/** Reads the programs that run inside. */
async function clientFiles(): Promise<PutFiles> {
  const names = ['channel/client.ts', 'channel/exec-echo.ts', 'gateway/conversation.ts'];
  const texts = names.map(async (name) => [name, await readFile(join(import.meta.dirname, name), 'utf8')] as const);
  return { tree: treeOf(Object.fromEntries(await Promise.all(texts))), at: programsDirectory, owner: 'agent' };
}

interface Bench {
  readonly stack: string;
  readonly gateway: GatewayProcess;
  readonly providers: Readonly<Record<ChannelKind, SandboxProvider>>;
  readonly mounts: readonly SandboxMount[];
  readonly files: readonly PutFiles[];
  readonly sockets: ReturnType<typeof readConfigWith>['paths']['gatewaySockets'];
  readonly signal: AbortSignal;
}

interface Cell {
  readonly kind: ChannelKind;
  readonly session: string;
  readonly secret: string;
  readonly turns: number;
  readonly historyKb: number;
}

interface Measured {
  times: number[];
  cpuMs: number;
}

interface MeasuredSandbox extends Measured {
  /** The times of round trips over a stream that carries nothing but bytes. Empty for a socket. */
  readonly echoes: readonly number[];
}

/** Runs the client in a new sandbox; returns its times, and the CPU time of this process. */
async function measure(bench: Bench, { kind, session, secret, turns, historyKb }: Cell): Promise<MeasuredSandbox> {
  const { stack, gateway, providers, mounts, files, sockets, signal } = bench;
  const provider = providers[kind];
  const expiresAtMs = Date.now() + hourMs;
  const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 64 };
  await gateway.control.open({
    session,
    sampling,
    seed: 'run/1/0/0/1',
    group: null,
    maxTurns: 100_000,
    expiresAt: expiresAtMs,
  });
  const channel = createChannels(sockets)[kind];
  const gatewayDir = await channel.gatewayDir(session);
  const sandbox = await provider.ensure(
    {
      name: session,
      image: 'temper-tasks:bookworm',
      labels: { stack, run: 'bench', rollout: session, epoch: 1, purpose: 'agent', channel: kind, expiresAtMs },
      cpus: 2,
      memoryMb: 1024,
      diskMb: 64,
      pids: 256,
      workdir: '/workspace',
      mounts,
      files,
      ...(gatewayDir !== null && { gatewayDir }),
    },
    signal,
  );
  try {
    const client = [
      `${runtimeTarget}/bin/run`,
      `${programsDirectory}/channel/client.ts`,
      address,
      turns + warmUpTurns,
      historyKb * 1024,
    ];
    const [program = '', ...args] = throughRelay(address, { exec: ['/bin/sh', ...client.map(String)] });
    const env = { SECRET: secret, ...(kind === 'stream' && { [channelVariable]: kind }) };
    await sandbox.start({ key: 'client', account: 'agent', argv: [program, ...args], env }, signal);
    const held = channel.hold(sandbox, { session, onOutage: (cause) => console.error('outage:', cause) });
    const before = process.cpuUsage();
    const status = await sandbox.wait('client', { timeoutMs: hourMs }, signal);
    const { user, system } = process.cpuUsage(before);
    held.close();
    const log = String((await sandbox.readLog('client', { fromByte: 0, maxBytes: 10_000_000 })).bytes);
    if (status.state !== 'exited' || status.exitCode !== 0)
      throw new Error(`the client failed: ${log.slice(0, 2_000)}`);
    const times: number[] = JSON.parse(log.split('\n').find((line) => line.startsWith('[')) ?? '[]');
    const echoes = kind === 'stream' ? await measureEcho(sandbox, { turns, bytes: historyKb * 1024 }, signal) : [];
    return { times: times.slice(warmUpTurns), cpuMs: (user + system) / 1_000, echoes };
  } finally {
    await provider.remove(session);
    await gateway.control.close(session);
  }
}

/** Measures a stream alone: how long a message of a turn's size takes to the sandbox, and a short answer back. */
async function measureEcho(
  sandbox: Pick<Sandbox, 'openStream'>,
  { turns, bytes }: { readonly turns: number; readonly bytes: number },
  signal: AbortSignal,
): Promise<readonly number[]> {
  const args = [`${programsDirectory}/channel/exec-echo.ts`, String(bytes), String(replyBytes)];
  const command = { account: 'agent', argv: [`${runtimeTarget}/bin/run`, ...args], env: {} } as const;
  const stream = await sandbox.openStream?.(command, signal);
  if (stream === undefined) throw new Error('expected the sandbox to have streams');
  const answers: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
  const message = Buffer.alloc(bytes, 'x');
  const times: number[] = [];
  for (let turn = 0; turn < turns + warmUpTurns; turn += 1) {
    // As in a conversation, between whose turns every process on the way goes to sleep.
    await sleep(pauseMs);
    const startedAt = performance.now();
    stream.write(message);
    for (let received = 0; received < replyBytes; ) {
      const answer = await answers.next();
      if (answer.done === true) throw new Error('the stream ended before its answer');
      received += answer.value.length;
    }
    times.push(performance.now() - startedAt);
  }
  stream.destroy();
  return times.slice(warmUpTurns);
}

function print(historyKb: number, kind: ChannelKind, { times, cpuMs }: Measured): void {
  const figures = [quantile(times, 0.5), quantile(times, 0.99), cpuMs / times.length];
  console.log(
    [`${historyKb} KB`.padEnd(10), kind.padEnd(8), ...figures.map((figure) => figure.toFixed(2).padStart(8))].join(' '),
  );
}

function quantile(times: readonly number[], share: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
