/**
 * Measures the life of a sandbox beside the bare calls of its API: created and ready, a first command, removed. Then the same for
 * many at once, the calls of the API for each, and a round trip on an open stream. Run it on an idle machine.
 */
import { once } from 'node:events';
import { KubeConfig } from '@kubernetes/client-node';
import { Command, Option } from 'commander';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import type { KubernetesOptions } from '../../infra/sandbox/kubernetes/settings.ts';
import type { SandboxProvider, SandboxSpec } from '../../infra/sandbox/sandbox.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { startApiProxy } from '../helpers/kubernetes/api-proxy.ts';
import { type Life, lifeByDocker, lifeByKubernetes, lifeByTemper } from './sandbox/lives.ts';

const steps = ['create', 'exec', 'remove'] as const;
const roundTrips = 500;
const messageBytes = 4_096;
const stack = `bench-${process.pid}`;
const signal = AbortSignal.timeout(3_600_000);

interface Options {
  readonly kind: 'docker' | 'kubernetes';
  readonly namespace: string;
  readonly programs: string;
  readonly image: string;
  readonly rounds: number;
  readonly many: number;
  readonly json?: boolean;
}

await new Command('npm run bench:sandbox --')
  .description('Measures the life of a sandbox beside the bare calls of its API. Run it on an idle machine.')
  .addOption(new Option('--kind <kind>', 'kind of sandbox').choices(['docker', 'kubernetes']).default('docker'))
  .option('--namespace <name>', 'namespace of the Pods', 'default')
  .option('--programs <image>', 'image of programs for the Pods', 'temper-programs:test')
  .option('--image <image>', 'image of the sandboxes', 'temper-tasks:bookworm')
  .option('--rounds <n>', 'lives of each way, which take turns', wholeNumber(1, 1_000), 10)
  .option('--many <n>', 'sandboxes at once', wholeNumber(0, 10_000), 100)
  .option('--json', 'print one line of JSON')
  .action((options: Options) => main(options))
  .parseAsync();

async function main({ kind, namespace, programs, image, rounds, many, json = false }: Options): Promise<void> {
  const settings = { namespace, programs, requests: 0.01 };
  const bareOf = (atOnce: number): Life => (kind === 'docker' ? lifeByDocker() : lifeByKubernetes(settings, atOnce));
  const bare = bareOf(1);
  const provider =
    kind === 'docker' ? createDockerProvider({ stack }) : createKubernetesProvider({ stack, ...settings });
  const specOf = (name: string): SandboxSpec => {
    const expiresAtMs = Date.now() + 3_600_000;
    const labels = { stack, run: 'bench', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
    const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };
    return { name, image, labels, ...limits, workdir: '/workspace', mounts: [] };
  };
  const temper = lifeByTemper(provider);
  try {
    // The first life of each way pays for what is loaded once.
    for (const [way, life] of [['warm-temper', temper] as const, ['warm-bare', bare] as const])
      await live(life, specOf(`${stack}-${way}`));
    const calls = kind === 'kubernetes' ? await countedCalls(settings, specOf(`${stack}-counted`)) : null;
    const lives = { temper: [] as number[][], bare: [] as number[][] };
    for (let round = 0; round < rounds; round += 1) {
      lives.temper.push(await live(temper, specOf(`${stack}-temper-${round}`)));
      lives.bare.push(await live(bare, specOf(`${stack}-bare-${round}`)));
    }
    const median = (all: readonly number[][]) => steps.map((_, at) => middle(all.map((one) => one[at] ?? Number.NaN)));
    const figures = {
      kind,
      temperMs: byStep(median(lives.temper)),
      bareMs: byStep(median(lives.bare)),
      times: sum(median(lives.temper)) / sum(median(lives.bare)),
      callsPerLife: calls,
      many,
      manyTemperMs: await liveAtOnce(temper, many, (n) => specOf(`${stack}-many-${n}`)),
      manyBareMs: await liveAtOnce(bareOf(many), many, (n) => specOf(`${stack}-many-bare-${n}`)),
      roundTripMs: await roundTrip(provider, specOf(`${stack}-stream`)),
    };
    if (json) console.log(JSON.stringify(figures));
    else console.log(figures);
  } finally {
    await provider.close();
  }
}

/** Counts what one life asks of the API server. */
async function countedCalls(settings: KubernetesOptions, spec: SandboxSpec) {
  const config = new KubeConfig();
  config.loadFromDefault();
  const proxy = await startApiProxy(config);
  const { KUBECONFIG } = process.env;
  process.env.KUBECONFIG = proxy.kubeconfig;
  const provider = createKubernetesProvider({ stack, ...settings });
  try {
    await live(lifeByTemper(provider), spec);
    const streams = proxy.requests.filter(({ path }) => path.endsWith('/exec')).length;
    return { calls: proxy.requests.length - streams, streams };
  } finally {
    await provider.close();
    await proxy.close();
    if (KUBECONFIG === undefined) delete process.env.KUBECONFIG;
    else process.env.KUBECONFIG = KUBECONFIG;
  }
}

/** Lives one life, and returns the time of each step in milliseconds. */
async function live(life: Life, spec: SandboxSpec): Promise<number[]> {
  const { name } = spec;
  return [
    await timed(() => life.create(spec)),
    await timed(() => life.exec(name)),
    await timed(() => life.remove(name)),
  ];
}

/** Takes each step of many lives at once, and returns its time in milliseconds. */
async function liveAtOnce(life: Life, many: number, specOf: (n: number) => SandboxSpec) {
  const specs = Array.from({ length: many }, (_, n) => specOf(n));
  const all = (step: (spec: SandboxSpec) => Promise<void>) => timed(() => Promise.all(specs.map(step)));
  const createMs = await all((spec) => life.create(spec));
  const execMs = await all(({ name }) => life.exec(name));
  return byStep([createMs, execMs, await all(({ name }) => life.remove(name))]);
}

/** Measures a message of 4 KB to a command and back, on a stream that is open. */
async function roundTrip(provider: SandboxProvider, spec: SandboxSpec): Promise<number> {
  const sandbox = await provider.ensure(spec, signal);
  const stream = await sandbox.openStream?.({ argv: ['cat'], env: {}, account: 'agent' }, signal);
  if (stream === undefined) throw new Error(`expected ${provider.kind} sandboxes to have streams`);
  const message = Buffer.alloc(messageBytes, 'x');
  const times: number[] = [];
  for (let trip = 0; trip < roundTrips; trip += 1) {
    const began = performance.now();
    stream.write(message);
    for (let got = 0; got < messageBytes; ) got += ((await once(stream, 'data')) as [Buffer])[0].length;
    times.push(performance.now() - began);
  }
  stream.destroy();
  await provider.remove(spec.name);
  return middle(times);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function byStep(times: readonly number[]) {
  return Object.fromEntries(steps.map((step, at) => [step, times[at]]));
}

function sum(all: readonly number[]): number {
  return all.reduce((a, b) => a + b, 0);
}

function middle(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}
