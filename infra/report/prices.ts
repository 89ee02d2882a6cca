import { z } from 'zod';
import type { CostSum, SandboxProvider } from '../../workflows/contracts/cost.ts';
import { poolName } from '../../workflows/contracts/policy.ts';
import { sandboxKinds } from '../../workflows/contracts/sandbox-kinds.ts';
import { upstreamName } from '../../workflows/contracts/upstream.ts';
import { readOperatorFile } from '../operator-file.ts';

const price = z.number({ error: 'expected a number' }).min(0, { error: 'expected a number of at least 0' });
const perMillion = z.strictObject({ input: price, output: price });
const table = z.strictObject({
  currency: z.string({ error: 'expected a currency, for example EUR, in a file that exists' }).min(1).max(8),
  pools: z.record(poolName, perMillion).default({}).describe('Prices of a million tokens of policies, by pool.'),
  upstreams: z.record(upstreamName, perMillion).default({}).describe('The same of upstream models, by name.'),
  sandboxHour: z.partialRecord(z.enum(sandboxKinds), price).default({}),
  evaluationHour: price.optional(),
  trainerHour: price.optional(),
});
/** The prices of tokens and hours. They are applied when a cost is shown, and stored nowhere. */
export type Prices = Readonly<z.output<typeof table>>;

/** The model that sampled: the policy of a pool, or an upstream model. */
export type Sampler = { readonly pool: string } | { readonly upstream: string };

export interface Money {
  readonly amount: number;
  /** The kinds of use without a price, for which the amount is a lower bound. */
  readonly without: readonly string[];
}

/** Reads the price table; null if none is named. Throws InvalidInput, which names file and field. */
export async function readPrices(path: string | null): Promise<Prices | null> {
  return path === null ? null : readOperatorFile(path, 'a JSON object of prices', table);
}

/** Prices what rollouts used. */
export function priceOf(sum: Omit<CostSum, 'rollouts' | 'unknown'>, sampler: Sampler, prices: Prices): Money {
  const name = 'pool' in sampler ? `pool ${sampler.pool}` : `upstream ${sampler.upstream}`;
  const model = 'pool' in sampler ? prices.pools[sampler.pool] : prices.upstreams[sampler.upstream];
  const hours = Object.entries(sum.sandboxSeconds) as [SandboxProvider, number][];
  return addMoney([
    item(sum.promptTokens / 1e6, model?.input, `tokens of ${name}`),
    item(sum.sampledTokens / 1e6, model?.output, `tokens of ${name}`),
    item(sum.evaluationSeconds / 3600, prices.evaluationHour, 'evaluations'),
    ...hours.map(([provider, seconds]) =>
      item(seconds / 3600, provider === 'unknown' ? undefined : prices.sandboxHour[provider], `sandboxes: ${provider}`),
    ),
  ]);
}

/** Prices the time of the trainer. */
export const priceOfTrainer = (seconds: number, { trainerHour }: Prices): Money =>
  item(seconds / 3600, trainerHour, 'the trainer');

export function addMoney(items: readonly Money[]): Money {
  return {
    amount: items.reduce((sum, { amount }) => sum + amount, 0),
    without: [...new Set(items.flatMap(({ without }) => without))],
  };
}

function item(used: number, of: number | undefined, what: string): Money {
  if (used === 0) return { amount: 0, without: [] };
  return of === undefined ? { amount: 0, without: [what] } : { amount: used * of, without: [] };
}
