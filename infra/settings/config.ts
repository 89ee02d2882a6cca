import { availableParallelism, homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { z } from 'zod';
import type { NetworkMode } from '../../workflows/contracts/network.ts';
import { defaultPool } from '../../workflows/contracts/policy.ts';
import { isRemote, type SandboxChoice } from '../../workflows/contracts/sandbox-kinds.ts';
import type { EnginePool } from '../engine/pools.ts';
import type { HostVariables } from '../harbor/host-variables.ts';
import { defaultCapacity } from '../machine/rollouts-that-fit.ts';
import { type Paths, pathsBelow } from '../paths.ts';
import type { E2bSettings } from '../sandbox/e2b/settings.ts';
import { e2bFrom } from '../sandbox/e2b/variables.ts';
import type { KubernetesSettings } from '../sandbox/kubernetes/settings.ts';
import { kubernetesFrom } from '../sandbox/kubernetes/variables.ts';
import type { StackKeys } from '../stack.ts';
import type { StorePlace } from '../store/shared-state.ts';
import { environment } from './environment.ts';
import { type ListenSettings, listenFrom } from './listen.ts';
import { moduleFrom } from './modules.ts';
import { stackKeysFrom, storeFrom } from './store.ts';

// This module is the only reader of a stack's environment. The composition roots in `workers/` hand each part what it needs of it.

export type WorkerKind = 'control' | 'host' | 'trainer';

/** The settings of a stack on this machine, parsed. */
export interface Config extends ListenSettings {
  readonly home: string;
  readonly host: string;
  /** The time without a sign of life after which a host counts as lost. */
  readonly hostLostAfterMs: number;
  /** The time for which a relay holds its agent's model calls while no host carries them. */
  readonly hostHoldMs: number;
  /** The directory for the journals of all hosts; null: those of this host are in its home, where no other one finds them. */
  readonly sharedJournals: string | null;
  readonly sandbox: SandboxChoice;
  /** The way of model calls from sandboxes whose kind has a choice. */
  readonly channel: 'socket' | 'stream';
  /** The network that tasks may have at most. */
  readonly network: NetworkMode;
  readonly capacity: number;
  readonly sweepShare: number;
  /** The sandboxes that all hosts together create per second; null for no limit. */
  readonly createsPerSecond: number | null;
  readonly evaluations: number;
  /** The width of each lane of heavy stages on this host. */
  readonly lanes: number;
  /** The variables of this host's environment that tasks may have. */
  readonly taskVariables: HostVariables;
  readonly snapshotMb: number;
  /** Limits of a Docker host; 0 pulls or builds disable them, 0 GB of disk means no limit. */
  readonly docker: {
    readonly pulls: number;
    readonly builds: number;
    readonly creates: number;
    readonly imageDiskGb: number;
    readonly buildNetwork: string;
    readonly runtime: string;
  };
  /** The E2B server and account; null: this host has no such sandboxes. */
  readonly e2b: E2bSettings | null;
  /** The place and the properties of sandboxes in a cluster; null: this host has no such sandboxes. */
  readonly kubernetes: KubernetesSettings | null;
  /** Directory of Docker's own config.json. */
  readonly dockerConfigDir: string;
  readonly temporalPort: number;
  readonly uiPort: number;
  /** The Worker Deployment and the build id that make a control worker a version; null runs it without. */
  readonly deployment: Deployment | null;
  readonly gateways: number;
  readonly modelDir: string;
  readonly engine: {
    readonly capacity: number | null;
    /** Seconds that a turn waits for an unreachable engine. */
    readonly graceSec: number;
    /** Whether requests carry a seed. */
    readonly seeds: boolean;
  };
  /** The pool of engines that the environment names, with its trainer. It holds secrets: never log it. */
  readonly pool: EnginePool;
  /** The file that names further pools. */
  readonly pools: string;
  /** The file that configures the OpenEnv environments of tasks. */
  readonly environments: string;
  /** The file that configures the upstream models. */
  readonly upstreams: string;
  /** Modules with the user's own agents: absolute paths, or packages. */
  readonly agents: readonly string[];
  /** Modules with host tools: absolute paths, or packages. */
  readonly tools: readonly string[];
  /** Modules with rewards: absolute paths, or packages. */
  readonly rewards: readonly string[];
  /** The file with the price table; null if none is named. */
  readonly prices: string | null;
  readonly trainer: { readonly requestTokens: number };
  readonly checkpoints: string;
  readonly engineCheckpoints: string;
  readonly taskRoots: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  /** The place of the logs of the processes that the supervisor starts. */
  readonly logs: 'files' | 'stdout';
  readonly cacheDir: string;
  readonly paths: Paths;
  /** Reads the stack's keys, which are secrets; null: they are in the home. */
  readonly stackKeys: (() => Promise<StackKeys>) | null;
  /** The files with secrets that this machine may have. */
  readonly keyFiles: readonly string[];
  /** The place of the state that all processes of the stack share. */
  readonly store: StorePlace;
  /**
   * The environment that the config was read from: for child processes, which read the same config from it, and for
   * libraries with variables of their own (Temporal's profile, PATH). It holds secrets: never log it.
   */
  readonly env: Environment;
}

/** The name of a version of the control worker. */
export interface Deployment {
  readonly name: string;
  readonly buildId: string;
}

/** Variables of a process, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The work that runs at once by default on a host whose machine does it. */
const localWork = () => ({ evaluations: 2, lanes: Math.max(4, 2 * availableParallelism()) });
/** The same on a host that mostly waits for what its cluster or provider does. */
const remoteWork = { evaluations: 16, lanes: 32 };

/** Reads the environment. Throws an Error that names each invalid variable, what was expected, and its value. */
export function readConfig(source: Environment = process.env): Config {
  const parsed = environment.safeParse(source);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      (issue) => `${issue.path.join('.')}: ${issue.message}, got ${JSON.stringify(source[String(issue.path[0])])}`,
    );
    throw new Error(`invalid settings in the environment:\n  ${problems.join('\n  ')}`);
  }
  const env = parsed.data;
  const usual = isRemote(env.TEMPER_SANDBOX) ? remoteWork : localWork();
  const home = resolve(env.TEMPER_HOME ?? join(env.XDG_STATE_HOME ?? join(homedir(), '.local/state'), 'temper'));
  const [listening, host] = [listenFrom(env), hostFrom(env)];
  const paths = pathsOf(home, host);
  const checkpoints = env.TEMPER_CHECKPOINTS ?? join(paths.policy, 'checkpoints');
  return {
    home,
    ...host,
    sandbox: env.TEMPER_SANDBOX,
    channel: env.TEMPER_CHANNEL,
    capacity: env.TEMPER_CAPACITY ?? defaultCapacity({ home, sandbox: env.TEMPER_SANDBOX }),
    sweepShare: env.TEMPER_SWEEP_SHARE,
    createsPerSecond: env.TEMPER_CREATES_PER_SECOND ?? null,
    evaluations: env.TEMPER_EVALUATIONS ?? usual.evaluations,
    lanes: env.TEMPER_LANES ?? usual.lanes,
    snapshotMb: env.TEMPER_SNAPSHOT_MB,
    taskVariables: valuesOf(env.TEMPER_TASK_VARIABLES, source),
    docker: dockerFrom(env),
    e2b: e2bFrom(env, home),
    kubernetes: kubernetesFrom(env),
    dockerConfigDir: env.DOCKER_CONFIG ?? join(homedir(), '.docker'),
    temporalPort: env.TEMPER_TEMPORAL_PORT,
    uiPort: env.TEMPER_UI_PORT,
    deployment: deploymentFrom(env),
    ...listening,
    gateways: env.TEMPER_GATEWAYS,
    modelDir: env.TEMPER_MODEL_DIR ?? join(import.meta.dirname, '../tasks/generated/temper-tiny'),
    engine: {
      capacity: env.TEMPER_ENGINE_CAPACITY ?? null,
      graceSec: env.TEMPER_ENGINE_HOLD,
      seeds: env.TEMPER_ENGINE_SEEDS === 'on',
    },
    pool: poolFrom(env, listening.policyUrl),
    pools: resolve(env.TEMPER_ENGINES ?? join(home, 'engines.json')),
    environments: resolve(env.TEMPER_ENVIRONMENTS ?? join(home, 'environments.json')),
    upstreams: resolve(env.TEMPER_UPSTREAMS ?? join(home, 'upstreams.json')),
    agents: env.TEMPER_AGENTS.map(moduleFrom),
    tools: env.TEMPER_TOOLS.map(moduleFrom),
    rewards: env.TEMPER_REWARDS.map(moduleFrom),
    prices: env.TEMPER_PRICES === undefined ? null : resolve(env.TEMPER_PRICES),
    trainer: { requestTokens: env.TEMPER_TRAINER_REQUEST_TOKENS },
    checkpoints,
    engineCheckpoints: env.TEMPER_ENGINE_CHECKPOINTS ?? checkpoints,
    taskRoots: env.TEMPER_TASK_ROOTS.map((root) => resolve(root)),
    logLevel: env.TEMPER_LOG_LEVEL,
    logs: env.TEMPER_LOGS,
    cacheDir: join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'temper'),
    paths,
    stackKeys: stackKeysFrom(env),
    keyFiles: keyFilesOf(env, paths, source),
    store: storeFrom(env, home, source),
    env: { ...source },
  };
}

const keyFilesOf = (
  env: z.output<typeof environment>,
  { stackKey }: Paths,
  { TEMPORAL_TLS_CLIENT_KEY_PATH: temporalKey }: Environment,
): readonly string[] =>
  [env.TEMPER_STACK_KEY_FILE ?? stackKey, env.TEMPER_LISTEN_KEY, env.E2B_API_KEY_FILE, temporalKey].filter(
    (one) => one !== undefined,
  );

/** The most seconds around the watch of a lost host: three until it begins, one of looks, and an adoption. */
const toAdoptSec = 420;

function hostFrom(env: z.output<typeof environment>) {
  return {
    host: env.TEMPER_HOST ?? nameOfMachine(),
    network: env.TEMPER_NETWORK,
    hostLostAfterMs: env.TEMPER_HOST_LOST_AFTER * 1000,
    hostHoldMs: (env.TEMPER_HOST_HOLD ?? env.TEMPER_HOST_LOST_AFTER + toAdoptSec) * 1000,
    sharedJournals: env.TEMPER_JOURNALS === undefined ? null : resolve(env.TEMPER_JOURNALS),
  };
}

function pathsOf(home: string, { host, sharedJournals }: Pick<Config, 'host' | 'sharedJournals'>): Paths {
  const own = pathsBelow(home);
  return sharedJournals === null ? own : { ...own, journals: join(sharedJournals, host) };
}

/** The machine's name, with the characters that a host's name may have. */
const nameOfMachine = (): string =>
  hostname()
    .replaceAll(/[^a-zA-Z0-9._-]/g, '-')
    .slice(0, 60);

/** The pool of engines that the environment names, with its trainer: by default the embedded policy server. */
function poolFrom(env: z.output<typeof environment>, policyUrl: string): EnginePool {
  return {
    name: defaultPool,
    kind: env.TEMPER_ENGINE,
    urls: env.TEMPER_ENGINE_URLS.length > 0 ? env.TEMPER_ENGINE_URLS : [policyUrl],
    model: env.TEMPER_ENGINE_MODEL,
    publish: env.TEMPER_PUBLISH,
    apiKey: env.TEMPER_ENGINE_API_KEY,
    embedded: env.TEMPER_ENGINE_URLS.length === 0,
    trainer: {
      url: env.TEMPER_TRAINER_URL ?? policyUrl,
      model: env.TEMPER_TRAINER_MODEL,
      apiKey: env.TEMPER_TRAINER_API_KEY,
      reduction: env.TEMPER_TRAINER_REDUCTION,
    },
  };
}

/** Returns the values of those variables that are set. */
const valuesOf = (names: readonly string[], source: Environment): HostVariables =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = source[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

const dockerFrom = (env: z.output<typeof environment>): Config['docker'] => ({
  pulls: env.TEMPER_PULLS,
  builds: env.TEMPER_BUILDS,
  creates: env.TEMPER_CREATES,
  imageDiskGb: env.TEMPER_IMAGE_DISK_GB,
  buildNetwork: env.TEMPER_BUILD_NETWORK,
  runtime: env.TEMPER_RUNTIME,
});

function deploymentFrom({ TEMPER_DEPLOYMENT: name, TEMPER_BUILD_ID: buildId }: z.output<typeof environment>) {
  if (name !== undefined && buildId !== undefined) return { name, buildId };
  if (name === undefined && buildId === undefined) return null;
  const [given, lacking] = name === undefined ? ['BUILD_ID', 'DEPLOYMENT'] : ['DEPLOYMENT', 'BUILD_ID'];
  throw new Error(
    `expected TEMPER_DEPLOYMENT and TEMPER_BUILD_ID, got only TEMPER_${given}; set TEMPER_${lacking}, too`,
  );
}

/** Reads this process's environment with some settings replaced, for example the home by `--home`. */
export const readConfigWith = (settings: Settings): Config => readConfig({ ...process.env, ...settings });

export type Settings = Readonly<Partial<Record<keyof z.input<typeof environment>, string>>>;
