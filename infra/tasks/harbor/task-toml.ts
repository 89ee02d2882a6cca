import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { describeIssue, integer, number } from '../../../workflows/contracts/input.ts';
import { withDefault } from './host-variables.ts';
import { refuseUnsupported } from './unsupported.ts';

/** `task.toml`, schema 1.x. Keys that we don't know belong to others and are left alone. */
const seconds = number(1, 1_000_000, 'seconds').nullish();
const variables = z.record(z.string(), z.string({ error: 'expected a string' }).transform(withDefault)).default({});

const weights = z
  .record(z.string(), number(0, 1_000_000), { error: 'expected numbers by the names of scores' })
  .refine((all) => Object.values(all).some((weight) => weight > 0), { error: 'expected a weight above 0' });

/** `"2G"`, as older files have it, in MB. */
const size = z
  .string()
  .regex(/^\d+(\.\d+)?\s*[MG]i?B?$/i, { error: 'expected a size such as "512M" or "2G"' })
  .transform((value) => Math.ceil(Number.parseFloat(value) * (/g/i.test(value) ? 1024 : 1)));

const version = z
  .string({ error: 'expected a version such as "1.0"' })
  .regex(/^1\.[0-4]$/, { error: 'expected a version from "1.0" to "1.4"' })
  .default('1.0');

/** Tables that ask for more than a sandbox gives; what they hold does not matter. */
const table = z.record(z.string(), z.unknown()).optional();

/** Of the environment, and where the agent or its tests have another one. */
const network = {
  network_mode: z
    .enum(['no-network', 'public', 'allowlist'], { error: 'expected "no-network", "public" or "allowlist"' })
    .optional(),
  allowed_hosts: z.array(z.string({ error: 'expected the name of a host' })).optional(),
};

const artifact = z.union([z.string(), z.looseObject({ source: z.string() }).transform(({ source }) => source)], {
  error: 'expected a path, or a table with source',
});

const taskToml = z.looseObject({
  version,
  /** The name that newer files use. */
  schema_version: version,
  task: z.looseObject({ name: z.string({ error: 'expected a name' }).optional() }).optional(),
  agent: z.looseObject({ timeout_sec: seconds, ...network }).prefault({}),
  solution: z.looseObject({ env: variables }).prefault({}),
  verifier: z
    .looseObject({
      timeout_sec: seconds,
      env: variables,
      ...network,
      /** Ours: how the scores of a reward.json weigh, by their names. */
      reward_weights: weights.optional(),
      environment_mode: z.enum(['shared', 'separate'], { error: 'expected "shared" or "separate"' }).optional(),
      environment: table,
      collect: z.array(z.unknown()).default([]),
    })
    .prefault({}),
  environment: z
    .looseObject({
      docker_image: z.string({ error: 'expected the name of an image' }).min(1).optional(),
      workdir: z
        .string({ error: 'expected an absolute path' })
        .startsWith('/', { error: 'expected an absolute path' })
        .optional(),
      /** How long its Dockerfile may take. */
      build_timeout_sec: number(1, 14_400, 'seconds').default(600),
      cpus: number(0.01, 1024).default(1),
      memory_mb: number(16, 10_000_000, 'MB').optional(),
      memory: size.optional(),
      storage_mb: number(1, 100_000_000, 'MB').optional(),
      storage: size.optional(),
      gpus: integer(0, 1024).default(0),
      mcp_servers: z.array(z.unknown()).default([]),
      tpu: table,
      os: z.string({ error: 'expected "linux"' }).default('linux'),
      healthcheck: table,
      skills_dir: z.string({ error: 'expected a path' }).optional(),
      ...network,
      env: variables,
      /** Ours: what the image holds and nobody is to find there; taken out before the set-up. */
      remove: z
        .array(z.string().startsWith('/', { error: 'expected an absolute path' }), { error: 'expected absolute paths' })
        .default([]),
      /** Ours: shell commands run in the workdir before the base commit is made. */
      setup: z.array(z.string({ error: 'expected a shell command' })).default([]),
      hidden_tests: z.array(z.string({ error: 'expected a shell command' })).default([]),
    })
    .prefault({}),
  /** Ours: how the tests run, and what an agent may not change on its way to its evaluation. */
  grading: z
    .looseObject({
      tests_in_repository: z.boolean({ error: 'expected true or false' }).default(false),
      /** The tests run as another account than the code, which they run by `/as-agent/run`. */
      code_as_agent: z.boolean({ error: 'expected true or false' }).default(false),
      protected: z.array(z.string({ error: 'expected a pattern of paths' }).min(1)).default([]),
    })
    .prefault({}),
  steps: z.array(z.unknown()).default([]),
  /** What is to be kept of the agent's sandbox; the files of the workdir are, as the diff. */
  artifacts: z.array(artifact).default([]),
});
export type TaskToml = z.output<typeof taskToml>;

/** Throws TemperFailure MalformedTask naming field, expected and got; UnsupportedTask naming what no sandbox here gives. */
export function parseTaskToml(source: string): TaskToml {
  const parsed = taskToml.safeParse(parseToml(source));
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => describeIssue(issue, parseToml(source)));
    throw new TemperFailure('MalformedTask', `task.toml: ${problems.join('; ')}`);
  }
  refuseUnsupported(parsed.data);
  return parsed.data;
}

function parseToml(source: string): unknown {
  try {
    return parse(source);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [first = ''] = cause.message.split('\n');
    throw new TemperFailure('MalformedTask', `task.toml: line ${cause.line}: expected TOML, got: ${first}`, { cause });
  }
}
