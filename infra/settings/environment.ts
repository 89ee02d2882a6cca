import { z } from 'zod';
import { sandboxChoices } from '../../workflows/contracts/sandbox-kinds.ts';
import { hubVariables } from '../data-sets/hub-account.ts';
import { e2bVariables } from '../sandbox/e2b/variables.ts';
import { kubernetesVariables } from '../sandbox/kubernetes/variables.ts';
import { address, commonDirectory, list, number, port, setting, share, text, wholeNumber } from '../setting.ts';
import { parseS3Address, s3AddressForm } from '../store/s3/place.ts';
import { listenVariables } from './listen.ts';
import { moduleVariables } from './modules.ts';
import { networkVariables } from './network.ts';
import { openEnvVariables } from './openenv.ts';
import { taskVariables } from './tasks.ts';

/**
 * Every environment variable that temper reads: the one table behind the reader (`infra/settings/config.ts`) and the settings
 * reference in the docs. What belongs to a training run is its workflow's input instead, so that a replay can't see
 * another value.
 */
export const environment = z.object({
  TEMPER_HOME: setting(
    text().optional(),
    'directory of the stack: database, store, journals, checkpoints, logs; `--home` replaces it',
    '`~/.local/state/temper`',
  ),
  TEMPER_STORE: setting(
    z
      .string()
      .refine((value) => parseS3Address(value) !== null, { error: `expected ${s3AddressForm}` })
      .optional(),
    "bucket and folder, `s3://bucket/prefix`, for what all processes of the stack share: blobs, records, cached verdicts, quarantine, the trainer's journal. Credentials are found as by every AWS tool: variables, profile, role of the container or machine",
    'the home',
  ),
  TEMPER_STORE_ENDPOINT: setting(
    z
      .url({ protocol: /^https?$/, error: 'expected an http or https address' })
      .refine((value) => !value.includes('@'), { error: 'expected an address without credentials' })
      .optional(),
    'address of an S3-compatible server',
    'AWS, or the value of `AWS_ENDPOINT_URL`',
  ),
  TEMPER_STORE_REGION: setting(
    text().optional(),
    'region of the bucket',
    '`AWS_REGION`, `AWS_DEFAULT_REGION` or profile; `us-east-1` with an endpoint',
  ),
  TEMPER_STORE_PATH_STYLE: setting(
    z.enum(['on', 'off']).optional(),
    '`on` puts the name of the bucket into the path of requests instead of the host name',
    '`on` if `TEMPER_STORE_ENDPOINT` is set, else `off`',
  ),
  TEMPER_JOURNALS: setting(
    text().optional(),
    'directory on a volume that all hosts mount, for the journals of turns; each host has a directory of its name in it. When a host is lost, another one that shares the directory [adopts](../guides/hosts.md#adoption) its rollouts whose sandboxes outlive it. Change it only while no rollout runs',
    '`gateway/journals` in the home; no host adopts',
  ),
  TEMPER_HOST: setting(
    z
      .string()
      .regex(/^(?!\.+$)[a-zA-Z0-9._-]{1,60}$/, {
        error: 'expected 1 to 60 letters, digits, ".", "_" or "-", and not only dots',
      })
      .optional(),
    'stable name of this machine as a host of sandboxes; its task queues carry the name',
    'the host name',
  ),
  TEMPER_HOST_LOST_AFTER: setting(
    wholeNumber(15, 86_400).default(180),
    'seconds without a sign of life after which a host counts as lost; the look for it begins within three minutes. A host renews its record in the store nine times as often, and stops acting a third of this time after its last renewal. Give all processes of a stack the same value',
  ),
  TEMPER_HOST_HOLD: setting(
    wholeNumber(1, 86_400).optional(),
    "seconds for which the relay in a sandbox holds its agent's model calls while no host carries them; only for sandboxes whose calls travel over a stream. Then the agent gets an error that its client may retry. A shorter time may be over before another host adopts the sandbox",
    '`TEMPER_HOST_LOST_AFTER` and 420 seconds: `600`',
  ),
  TEMPER_STACK_KEY: setting(
    text().optional(),
    'key that all hosts of the stack share, at least 64 hexadecimal digits: the secrets of its sessions are derived from it. To change it, give the new key before the old one, separated by a comma, until the sessions of the old one have ended',
    '`TEMPER_STACK_KEY_FILE`, else `stack.key` in the home, which is created',
  ),
  TEMPER_STACK_KEY_FILE: setting(
    text().optional(),
    'file with that key, or with several, one per line, the newest first',
    'none',
  ),
  TEMPER_SANDBOX: setting(
    z.enum(sandboxChoices).default('auto'),
    'sandbox kind that `auto` in a workflow input resolves to on this host: `docker`, `local`, `kubernetes`, `e2b`, or `auto` to use Docker where it answers',
  ),
  TEMPER_CHANNEL: setting(
    z.enum(['socket', 'stream']).default('socket'),
    'way of model calls from Docker sandboxes to the gateway: `socket` mounts unix sockets; `stream` mounts nothing, and the host worker carries the calls over a command in the sandbox. Local sandboxes always have sockets',
  ),
  TEMPER_CAPACITY: setting(
    wholeNumber(1, 65_535).optional(),
    'agents that run at once on this host, each in its own sandbox; `temper doctor` says how many fit. A larger number is accepted: the host takes no rollout while too little memory, processes, file handles or disk are free for one more',
    '`4`, or `64` with remote sandboxes, or fewer if fewer fit on the machine',
  ),
  TEMPER_SWEEP_SHARE: setting(
    share().default(0.5),
    'share of the capacity that evaluation sweeps may use while a training run is active; at least one sandbox',
  ),
  TEMPER_EVALUATIONS: setting(
    wholeNumber(1, 65_535).optional(),
    'evaluations that run at once; they have their own slots, so that agents cannot starve them',
    '`2`, or `16` with remote sandboxes',
  ),
  TEMPER_LANES: setting(
    wholeNumber(1, 1000).optional(),
    'heavy stages of each kind (provisioning, capture of diffs, release) that run at once on this host; the others wait in the queue, and the host lowers the number by itself while it is overloaded',
    'twice the cores, at least 4, or `32` with remote sandboxes',
  ),
  TEMPER_SNAPSHOT_MB: setting(wholeNumber(1, 2048).default(2048), 'most MB of changed files in one snapshot'),
  TEMPER_PULLS: setting(wholeNumber(0, 100).default(3), 'images pulled at once; `0` disables pulling'),
  TEMPER_BUILDS: setting(wholeNumber(0, 100).default(2), 'images built at once; `0` disables building'),
  TEMPER_CREATES: setting(
    wholeNumber(1, 100).default(4),
    'containers, and sandboxes of other servers, created at once',
  ),
  TEMPER_CREATES_PER_SECOND: setting(
    number(
      z.coerce
        .number<string>({ error: 'expected a number of sandboxes per second above 0' })
        .gt(0, { error: 'expected a number of sandboxes per second above 0' })
        .max(10_000, { error: 'expected at most 10000 sandboxes per second' }),
    ).optional(),
    'sandboxes that all hosts of the stack together create per second, as the Temporal server counts them, for a provider account that allows no more. Give it to each host, with the same value; a sandbox that is created again after a failure is not counted',
    'no limit',
  ),
  TEMPER_IMAGE_DISK_GB: setting(
    number(
      z.coerce
        .number<string>({ error: 'expected a number of gigabytes' })
        .min(0, { error: 'expected a number of gigabytes from 0' })
        .max(1_000_000, { error: 'expected a number of gigabytes up to 1000000' }),
    ).default(100),
    'disk, in GB, for the images that temper pulled or built; the least recently used are removed beyond it; `0` keeps all',
  ),
  ...networkVariables,
  ...taskVariables,
  ...e2bVariables,
  ...kubernetesVariables,
  TEMPER_TEMPORAL_PORT: setting(port(7233), "port of the stack's own Temporal server"),
  TEMPER_UI_PORT: setting(port(8233), "port of the stack's own Temporal UI"),
  TEMPER_DEPLOYMENT: setting(
    z
      .string()
      .regex(/^[a-zA-Z0-9_-]{1,60}$/, { error: 'expected 1 to 60 letters, digits, "_" or "-"' })
      .optional(),
    'name of the Worker Deployment whose versions the control workers are: open workflows then stay with the version that began them. Nothing runs until a version is made current; see [versions](../guides/production-temporal.md#versions-of-the-control-worker)',
    'no versions',
  ),
  TEMPER_BUILD_ID: setting(
    z
      .string()
      .regex(/^[a-zA-Z0-9._-]{1,60}$/, { error: 'expected 1 to 60 letters, digits, ".", "_" or "-"' })
      .optional(),
    'build id of this version of the control worker; belongs to `TEMPER_DEPLOYMENT`, and changes with the code',
    'none',
  ),
  ...listenVariables,
  TEMPER_GATEWAYS: setting(
    wholeNumber(1, 64).default(1),
    'gateway processes, which share the sessions; use more when one core cannot serve all model calls',
  ),
  TEMPER_MODEL_DIR: setting(
    text().optional(),
    "directory with the model's tokenizer, chat template and configuration",
    'the bundled `temper-tiny`',
  ),
  TEMPER_ENGINE: setting(z.enum(['vllm', 'sglang']).default('vllm'), 'API of the engines: `vllm` or `sglang`'),
  TEMPER_ENGINE_URLS: setting(
    list().refine((urls) => urls.every((url) => address().safeParse(url).success), {
      error: 'expected addresses that begin with http:// or https://, separated by commas',
    }),
    'addresses of the engine replicas, separated by commas',
    'the embedded policy server',
  ),
  TEMPER_ENGINE_CAPACITY: setting(
    wholeNumber(1, Number.MAX_SAFE_INTEGER).optional(),
    'requests that one engine replica processes at once',
    'derived from the KV cache that the engine reports',
  ),
  TEMPER_ENGINE_HOLD: setting(
    wholeNumber(1, 65_535).default(240),
    'seconds that a turn waits for an unreachable engine; an engine that restarts needs time to load its weights, and many clients give up after 300',
  ),
  TEMPER_ENGINE_SEEDS: setting(
    z.enum(['on', 'off']).default('on'),
    '`off` sends requests without a seed, so that a rollout cannot be sampled again; vLLM samples seeded requests one at a time, and its CPU build crashes on long ones',
  ),
  TEMPER_ENGINE_MODEL: setting(text().default('policy'), 'name of the base model at the engine'),
  TEMPER_ENGINE_API_KEY: setting(
    z.string().optional(),
    'bearer token sent to every engine; temper never writes it to a file',
    'none',
  ),
  TEMPER_ENGINES: setting(
    text().optional(),
    'file that names further pools of engines, for runs with other base models or with whole weights of their own',
    '`engines.json` in the home',
  ),
  TEMPER_UPSTREAMS: setting(
    text().optional(),
    'file that configures the upstream models that sweeps and rollouts may evaluate',
    '`upstreams.json` in the home',
  ),
  ...openEnvVariables,
  TEMPER_PRICES: setting(
    text().optional(),
    'file with the prices of tokens, sandboxes, evaluations and the trainer, by which `temper show` and the report state costs in money',
    'none',
  ),
  TEMPER_PUBLISH: setting(
    z.enum(['reload', 'lora']).default('reload'),
    'how new weights reach the engine: `reload` all of them, or load a `lora` adapter',
  ),
  TEMPER_TRAINER_URL: setting(
    address().optional(),
    'address of a trainer with the Tinker API',
    'the embedded policy server',
  ),
  TEMPER_TRAINER_MODEL: setting(text().default('policy'), 'name of the base model at the trainer'),
  TEMPER_TRAINER_API_KEY: setting(z.string().optional(), 'API key sent to the trainer', 'none'),
  TEMPER_TRAINER_REDUCTION: setting(
    z.enum(['sum', 'datum-mean']).default('sum'),
    'how the trainer reduces the loss of a batch: `sum` or `datum-mean`',
  ),
  TEMPER_TRAINER_REQUEST_TOKENS: setting(
    wholeNumber(1, Number.MAX_SAFE_INTEGER).default(500_000),
    'tokens, padding included, per `forward_backward` request; a larger batch is sent in several requests whose gradients add up. Lower it for a trainer that runs out of memory',
  ),
  TEMPER_CHECKPOINTS: setting(
    text().optional(),
    "directory of the trainer's checkpoints on this machine",
    '`policy/checkpoints` in the home',
  ),
  TEMPER_ENGINE_CHECKPOINTS: setting(
    text().optional(),
    'the same directory as the engine sees it, when the path differs (another mount, a chroot)',
    'the value of `TEMPER_CHECKPOINTS`',
  ),
  ...moduleVariables,
  TEMPER_TASK_ROOTS: setting(
    list(),
    'directories that `harbor:` addresses and data sets may point into, separated by commas',
    'none',
  ),
  ...hubVariables,
  TEMPER_LOG_LEVEL: setting(
    z.enum(['debug', 'info', 'warn', 'error']).default('info'),
    'least severe level that is logged: `debug`, `info`, `warn` or `error`',
  ),
  TEMPER_LOGS: setting(
    z.enum(['files', 'stdout']).default('files'),
    "place of the logs of the processes that `temper up` starts: `files` in the home, or its own `stdout`, as containers have it. The log of a Temporal server of the stack's own is always a file",
  ),
  XDG_STATE_HOME: setting(commonDirectory(), 'parent of the default home', '`~/.local/state`'),
  XDG_CACHE_HOME: setting(commonDirectory(), "parent of temper's cache of downloads and builds", '`~/.cache`'),
  DOCKER_CONFIG: setting(
    commonDirectory(),
    "directory of Docker's `config.json`, which holds this user's registry accounts",
    '`~/.docker`',
  ),
});

/** The variables that name the store; credentials are in others, which are never written to a file. */
export const storeVariables = [
  'TEMPER_STORE',
  'TEMPER_STORE_ENDPOINT',
  'TEMPER_STORE_REGION',
  'TEMPER_STORE_PATH_STYLE',
] as const satisfies readonly (keyof typeof environment.shape)[];

/** One environment variable, as the settings reference shows it. */
export interface Setting {
  readonly name: string;
  /** The default value in backticks, or how it is derived; Markdown. */
  readonly default: string;
  /** Markdown, without a final full stop. */
  readonly description: string;
}

export const settings: readonly Setting[] = Object.entries(environment.shape).map(([name, schema]) => {
  const { description = '', derivedDefault } = schema.meta() ?? {};
  return { name, description, default: String(derivedDefault ?? `\`${schema.parse(undefined)}\``) };
});
