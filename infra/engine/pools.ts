import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { defaultPool, poolName } from '../../workflows/contracts/policy.ts';
import { readOperatorFile, secretFrom, variableName } from '../operator-file.ts';
import { address } from '../setting.ts';

const about = z.strictObject({
  kind: z.enum(['vllm', 'sglang'], { error: 'expected vllm or sglang' }).default('vllm'),
  urls: z.array(address()).min(1, { error: 'expected at least one address' }),
  model: z.string({ error: 'expected the name of the base model at the engines' }).min(1),
  publish: z.enum(['reload', 'lora'], { error: 'expected reload or lora' }).default('reload'),
  apiKeyFrom: variableName.optional(),
  trainer: z
    .strictObject({
      url: address(),
      model: z.string({ error: 'expected the name of the base model at the trainer' }).min(1),
      reduction: z.enum(['sum', 'datum-mean'], { error: 'expected sum or datum-mean' }).default('sum'),
      apiKeyFrom: variableName.optional(),
    })
    .optional(),
});
const file = z.record(
  poolName.refine((name) => name !== defaultPool, {
    error: `expected another name: ${defaultPool} is the pool that the environment names`,
  }),
  about,
);

/** The trainer of the runs of a pool. */
export interface PoolTrainer {
  readonly url: string;
  readonly model: string;
  readonly reduction: 'sum' | 'datum-mean';
  /** A secret: it is sent in one header and used nowhere else. */
  readonly apiKey: string | undefined;
}

/** Engines with one base model, and the trainer that updates it. A run names its pool. */
export interface EnginePool {
  readonly name: string;
  readonly kind: 'vllm' | 'sglang';
  readonly urls: readonly string[];
  readonly model: string;
  readonly publish: 'reload' | 'lora';
  /** A secret, like the trainer's. */
  readonly apiKey: string | undefined;
  /** True for the embedded policy server, which serves whole weights of each run. */
  readonly embedded: boolean;
  readonly trainer: PoolTrainer;
}

/** Whether the engines serve the policies of several runs at once: as adapters, or as whole weights of each. */
export const servesSeveral = ({ publish, embedded }: Pick<EnginePool, 'publish' | 'embedded'>): boolean =>
  publish === 'lora' || embedded;

export interface EnginePools {
  /** Returns a pool by its name. Throws InvalidInput, which lists the known names, or names file and field. */
  find(name: string): Promise<EnginePool>;
}

/**
 * Provides the pool that the environment names, and those of the operator's file. The file is read at each call, so that a
 * new pool needs no restart. `environment` holds the API keys.
 */
export function createEnginePools(
  path: string,
  first: EnginePool,
  environment: Readonly<Record<string, string | undefined>>,
): EnginePools {
  const keyOf = (of: string, from: string | undefined): string | undefined =>
    from === undefined ? undefined : secretFrom(environment, from, `${path}: ${of}.apiKeyFrom`);
  return {
    async find(name) {
      if (name === defaultPool) return first;
      const { apiKeyFrom, trainer, ...rest } = await readPool(path, name);
      return {
        ...rest,
        name,
        embedded: false,
        apiKey: keyOf(name, apiKeyFrom),
        trainer:
          trainer === undefined
            ? first.trainer
            : {
                url: trainer.url,
                model: trainer.model,
                reduction: trainer.reduction,
                apiKey: keyOf(`${name}.trainer`, trainer.apiKeyFrom),
              },
      };
    },
  };
}

/** Refuses a name that neither is the pool of the environment nor in the operator's file. Throws InvalidInput, as `find` does. */
export async function requirePool(path: string, name: string): Promise<void> {
  if (name !== defaultPool) await readPool(path, name);
}

async function readPool(path: string, name: string): Promise<z.output<typeof about>> {
  const pools = await readOperatorFile(path, 'a JSON object of pools by their names', file);
  const found = Object.hasOwn(pools, name) ? pools[name] : undefined;
  if (found !== undefined) return found;
  const names = [defaultPool, ...Object.keys(pools)].join(', ');
  throw invalid(`pool: expected one of ${names}, got ${name}; add it to ${path}`);
}

const invalid = (message: string): TemperFailure => new TemperFailure('InvalidInput', message);
