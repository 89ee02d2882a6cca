import { homedir, hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { gatewayNames, socketOf } from './gateway/sockets.ts';
import { type Paths, pathsBelow } from './paths.ts';
import type { DockerLimits } from './sandbox/docker/limits.ts';

/**
 * The settings of a stack on this machine; the only reader of the environment. Settings of a training run are not here:
 * they are its workflow's input, so that a replay can't see another value.
 */
const count = (fallback: number) => z.coerce.number().int().min(1).max(65_535).default(fallback);
const list = z
  .string()
  .default('')
  .transform((value) => value.split(',').filter((item) => item !== ''));

const environment = z.object({
  /** Everything that a stack keeps: database, store, journals, checkpoints, logs. */
  TEMPER_HOME: z.string().optional(),
  XDG_STATE_HOME: z.string().optional(),
  XDG_CACHE_HOME: z.string().optional(),
  /** Docker's own: where its config.json is, with this user's accounts at registries. */
  DOCKER_CONFIG: z.string().optional(),
  /** Stable name of this machine as a host of sandboxes. */
  TEMPER_HOST: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{1,60}$/)
    .optional(),
  TEMPER_SANDBOX: z.enum(['auto', 'docker', 'local']).default('auto'),
  /** Agents' sandboxes at once. */
  TEMPER_CAPACITY: count(4),
  /** The part of these that sweeps may have while training runs. */
  TEMPER_SWEEP_SHARE: z.coerce.number().gt(0).max(1).default(0.5),
  /** Evaluations at once; a share of its own, so that agents can't starve them. */
  TEMPER_EVALUATIONS: count(2),
  /** Images pulled and built at once; with 0 none are. */
  TEMPER_PULLS: z.coerce.number().int().min(0).max(100).default(3),
  TEMPER_BUILDS: z.coerce.number().int().min(0).max(100).default(2),
  /** Containers made at once. */
  TEMPER_CREATES: z.coerce.number().int().min(1).max(100).default(4),
  /** Disk for the images that temper pulled or built, in GB; with 0 none is ever removed. */
  TEMPER_IMAGE_DISK_GB: z.coerce.number().min(0).max(1_000_000).default(100),
  /** Docker network of a build's commands; with the host's own they would reach our services. */
  TEMPER_BUILD_NETWORK: z
    .string()
    .regex(/^(?!host$)[a-zA-Z0-9][a-zA-Z0-9_.-]{0,60}$/, {
      error: 'expected "none" or the name of a Docker network, not "host"',
    })
    .default('none'),
  TEMPER_TEMPORAL_PORT: count(7233),
  TEMPER_UI_PORT: count(8233),
  TEMPER_POLICY_PORT: count(8600),
  /** Where the control worker serves its metrics to Prometheus; host and trainer worker take the next two. Default: nobody does. */
  TEMPER_METRICS_PORT: z.coerce.number().int().min(1).max(65_533).optional(),
  /** Gateway processes, which share the sessions; more than one where one core is not enough for all agents' model calls. */
  TEMPER_GATEWAYS: z.coerce.number().int().min(1).max(64).default(1),
  TEMPER_POLICY_KERNEL: z.enum(['simd', 'js']).default('simd'),
  TEMPER_MODEL_DIR: z.string().optional(),
  TEMPER_ENGINE: z.enum(['vllm', 'sglang']).default('vllm'),
  /** Comma-separated addresses of engine replicas; default: the stack's own policy server. */
  TEMPER_ENGINE_URLS: list,
  /** Requests that an engine replica works on at once; default: by what it tells of its KV cache. */
  TEMPER_ENGINE_CAPACITY: z.coerce.number().int().min(1).optional(),
  /** Seconds that a turn outlasts an engine that is away; a restarted one needs to load its weights. */
  TEMPER_ENGINE_HOLD: count(240),
  /** `off`: requests carry no random seed. vLLM samples those that do one by one, and its CPU build dies of long ones. */
  TEMPER_ENGINE_SEEDS: z.enum(['on', 'off']).default('on'),
  /** Name of the base model at the engine. */
  TEMPER_ENGINE_MODEL: z.string().default('policy'),
  /** Sent to the engines as a bearer token. */
  TEMPER_ENGINE_API_KEY: z.string().optional(),
  /** Names the upstream models that sweeps may evaluate. */
  TEMPER_UPSTREAMS: z.string().optional(),
  TEMPER_PUBLISH: z.enum(['reload', 'lora']).default('reload'),
  TEMPER_TRAINER_URL: z.string().optional(),
  TEMPER_TRAINER_MODEL: z.string().default('policy'),
  TEMPER_TRAINER_API_KEY: z.string().optional(),
  TEMPER_TRAINER_REDUCTION: z.enum(['sum', 'datum-mean']).default('sum'),
  /** Tokens, padding counted, that one forward_backward takes: some ten megabytes of ids, logprobs and advantages. */
  TEMPER_TRAINER_REQUEST_TOKENS: z.coerce.number().int().min(1).default(500_000),
  /** Where the trainer's checkpoints are on this machine, when it names them by an address of its own. */
  TEMPER_CHECKPOINTS: z.string().optional(),
  /** The same directory as the engine sees it, when that differs (another mount, a chroot). */
  TEMPER_ENGINE_CHECKPOINTS: z.string().optional(),
  /** Directories below which `harbor:` addresses and data sets may point. */
  TEMPER_TASK_ROOTS: list,
  TEMPER_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
});

export type WorkerKind = 'control' | 'host' | 'trainer';

export interface Config {
  readonly home: string;
  readonly host: string;
  readonly sandbox: 'auto' | 'docker' | 'local';
  readonly capacity: number;
  readonly sweepShare: number;
  readonly evaluations: number;
  readonly docker: DockerLimits;
  /** Holds Docker's own config.json. */
  readonly dockerConfigDir: string;
  readonly temporalPort: number;
  readonly uiPort: number;
  readonly policyPort: number;
  readonly metricsPorts: Readonly<Record<WorkerKind, number>> | null;
  readonly policyKernel: 'simd' | 'js';
  readonly gateways: number;
  readonly modelDir: string;
  readonly engine: {
    readonly kind: 'vllm' | 'sglang';
    readonly urls: readonly string[];
    readonly capacity: number | null;
    readonly holdSec: number;
    /** Do requests carry a random seed? */
    readonly seeds: boolean;
    readonly model: string;
    /** A secret: parts inherit it in their environment, nothing writes it down. */
    readonly apiKey: string | undefined;
  };
  /** The file that names the upstream models. */
  readonly upstreams: string;
  readonly publish: 'reload' | 'lora';
  readonly trainer: {
    readonly url: string;
    readonly model: string;
    /** A secret, as the engines'. */
    readonly apiKey: string | undefined;
    readonly reduction: 'sum' | 'datum-mean';
    readonly requestTokens: number;
  };
  readonly checkpoints: string;
  readonly engineCheckpoints: string;
  readonly taskRoots: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly cacheDir: string;
  readonly paths: Paths;
  /** What it was read from, for libraries with variables of their own (Temporal's profile, PATH). Never log it. */
  readonly env: Environment;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the environment. Throws an Error that names each wrong variable, what was expected and what it holds. */
export function readConfig(source: Environment = process.env): Config {
  const parsed = environment.safeParse(source);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      (issue) => `${issue.path.join('.')}: ${issue.message}, got ${JSON.stringify(source[String(issue.path[0])])}`,
    );
    throw new Error(`wrong settings in the environment:\n  ${problems.join('\n  ')}`);
  }
  const env = parsed.data;
  const home = resolve(env.TEMPER_HOME ?? join(env.XDG_STATE_HOME ?? join(homedir(), '.local/state'), 'temper'));
  const policyUrl = `http://127.0.0.1:${env.TEMPER_POLICY_PORT}`;
  const paths = pathsBelow(home);
  const checkpoints = env.TEMPER_CHECKPOINTS ?? join(paths.policy, 'checkpoints');
  return {
    home,
    host:
      env.TEMPER_HOST ??
      hostname()
        .replaceAll(/[^a-zA-Z0-9._-]/g, '-')
        .slice(0, 60),
    sandbox: env.TEMPER_SANDBOX,
    capacity: env.TEMPER_CAPACITY,
    sweepShare: env.TEMPER_SWEEP_SHARE,
    evaluations: env.TEMPER_EVALUATIONS,
    docker: {
      pulls: env.TEMPER_PULLS,
      builds: env.TEMPER_BUILDS,
      creates: env.TEMPER_CREATES,
      imageDiskGb: env.TEMPER_IMAGE_DISK_GB,
      buildNetwork: env.TEMPER_BUILD_NETWORK,
    },
    dockerConfigDir: env.DOCKER_CONFIG ?? join(homedir(), '.docker'),
    temporalPort: env.TEMPER_TEMPORAL_PORT,
    uiPort: env.TEMPER_UI_PORT,
    policyPort: env.TEMPER_POLICY_PORT,
    metricsPorts: metricsPortsFrom(env.TEMPER_METRICS_PORT),
    policyKernel: env.TEMPER_POLICY_KERNEL,
    gateways: env.TEMPER_GATEWAYS,
    modelDir: env.TEMPER_MODEL_DIR ?? join(import.meta.dirname, 'tasks/generated/temper-tiny'),
    engine: {
      kind: env.TEMPER_ENGINE,
      urls: env.TEMPER_ENGINE_URLS.length > 0 ? env.TEMPER_ENGINE_URLS : [policyUrl],
      capacity: env.TEMPER_ENGINE_CAPACITY ?? null,
      holdSec: env.TEMPER_ENGINE_HOLD,
      seeds: env.TEMPER_ENGINE_SEEDS === 'on',
      model: env.TEMPER_ENGINE_MODEL,
      apiKey: env.TEMPER_ENGINE_API_KEY,
    },
    upstreams: resolve(env.TEMPER_UPSTREAMS ?? join(home, 'upstreams.json')),
    publish: env.TEMPER_PUBLISH,
    trainer: {
      url: env.TEMPER_TRAINER_URL ?? policyUrl,
      model: env.TEMPER_TRAINER_MODEL,
      apiKey: env.TEMPER_TRAINER_API_KEY,
      reduction: env.TEMPER_TRAINER_REDUCTION,
      requestTokens: env.TEMPER_TRAINER_REQUEST_TOKENS,
    },
    checkpoints,
    engineCheckpoints: env.TEMPER_ENGINE_CHECKPOINTS ?? checkpoints,
    taskRoots: env.TEMPER_TASK_ROOTS.map((root) => resolve(root)),
    logLevel: env.TEMPER_LOG_LEVEL,
    cacheDir: join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'temper'),
    paths,
    env: source,
  };
}

function metricsPortsFrom(first: number | undefined): Config['metricsPorts'] {
  return first === undefined ? null : { control: first, host: first + 1, trainer: first + 2 };
}

/** Where the gateways of a stack are controlled. */
export const gatewayControls = ({ gateways, paths }: Config): readonly string[] =>
  gatewayNames(gateways).map((name) => socketOf(paths.gatewaySockets.control, name));

/** The environment with some settings replaced, as `--home` or a demo on a home of its own need it. */
export function readConfigWith(settings: Settings): Config {
  return readConfig({ ...process.env, ...settings });
}

export type Settings = Readonly<Partial<Record<keyof z.input<typeof environment>, string>>>;

/** The environment in which another process reads this same config: inverse of `readConfig`. */
export function environmentOf(config: Config): Record<string, string | undefined> {
  return {
    ...config.env,
    TEMPER_HOME: config.home,
    XDG_CACHE_HOME: dirname(config.cacheDir),
    TEMPER_HOST: config.host,
    TEMPER_SANDBOX: config.sandbox,
    TEMPER_CAPACITY: String(config.capacity),
    TEMPER_SWEEP_SHARE: String(config.sweepShare),
    TEMPER_EVALUATIONS: String(config.evaluations),
    TEMPER_PULLS: String(config.docker.pulls),
    TEMPER_BUILDS: String(config.docker.builds),
    TEMPER_CREATES: String(config.docker.creates),
    TEMPER_IMAGE_DISK_GB: String(config.docker.imageDiskGb),
    TEMPER_BUILD_NETWORK: config.docker.buildNetwork,
    TEMPER_TEMPORAL_PORT: String(config.temporalPort),
    TEMPER_UI_PORT: String(config.uiPort),
    TEMPER_POLICY_PORT: String(config.policyPort),
    TEMPER_METRICS_PORT: config.metricsPorts?.control.toString(),
    TEMPER_POLICY_KERNEL: config.policyKernel,
    TEMPER_GATEWAYS: String(config.gateways),
    TEMPER_MODEL_DIR: config.modelDir,
    TEMPER_ENGINE: config.engine.kind,
    TEMPER_ENGINE_URLS: config.engine.urls.join(','),
    TEMPER_ENGINE_CAPACITY: config.engine.capacity?.toString(),
    TEMPER_ENGINE_HOLD: String(config.engine.holdSec),
    TEMPER_ENGINE_SEEDS: config.engine.seeds ? 'on' : 'off',
    TEMPER_ENGINE_MODEL: config.engine.model,
    TEMPER_UPSTREAMS: config.upstreams,
    TEMPER_PUBLISH: config.publish,
    TEMPER_TRAINER_URL: config.trainer.url,
    TEMPER_TRAINER_MODEL: config.trainer.model,
    TEMPER_TRAINER_REDUCTION: config.trainer.reduction,
    TEMPER_TRAINER_REQUEST_TOKENS: String(config.trainer.requestTokens),
    TEMPER_CHECKPOINTS: config.checkpoints,
    TEMPER_ENGINE_CHECKPOINTS: config.engineCheckpoints,
    TEMPER_TASK_ROOTS: config.taskRoots.join(','),
    TEMPER_LOG_LEVEL: config.logLevel,
  };
}
