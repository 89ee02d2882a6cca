import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Costs, costTable, moneyOf } from '../../../infra/report/cost-table.ts';
import { readPrices } from '../../../infra/report/prices.ts';
import type { CostSum } from '../../../workflows/contracts/cost.ts';

const sum: CostSum = {
  rollouts: 4,
  unknown: 0,
  promptTokens: 2_000_000,
  sampledTokens: 500_000,
  engineSeconds: 60,
  waitedSeconds: 0,
  sandboxSeconds: { docker: 7200 },
  evaluationSeconds: 1800,
};
const lost: CostSum = {
  rollouts: 2,
  unknown: 2,
  promptTokens: 0,
  sampledTokens: 0,
  engineSeconds: 0,
  waitedSeconds: 0,
  sandboxSeconds: {},
  evaluationSeconds: 0,
};

describe('a cost in money', () => {
  let home = '';
  const write = async (content: unknown): Promise<string> => {
    const path = join(home, 'prices.json');
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-prices-'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  it('applies the prices of tokens, sandboxes, evaluations and the trainer', async () => {
    const table = {
      currency: 'EUR',
      pools: { big: { input: 3, output: 8 } },
      upstreams: { large: { input: 10, output: 20 } },
      sandboxHour: { docker: 0.5 },
      evaluationHour: 2,
      trainerHour: 6,
    };
    const prices = await readPrices(await write(table));
    const costs: Costs = { rollouts: { scored: sum }, trainerSeconds: 1800, sampler: { pool: 'big' }, prices };
    assert.deepEqual(moneyOf(costs), { currency: 'EUR', outcomes: { scored: 12 }, trainer: 3, total: 15, without: [] });
    const ofUpstream = moneyOf({ rollouts: { scored: sum }, sampler: { upstream: 'large' }, prices });
    assert.equal(ofUpstream?.total, 32);
    const other = moneyOf({ ...costs, sampler: { pool: 'default' } });
    assert.deepEqual([other?.total, other?.without], [5, ['tokens of pool default']]);
  });

  it('is left out without a price table, and what is unknown is called so', () => {
    const costs: Costs = {
      rollouts: { scored: sum, infra: lost },
      trainerSeconds: null,
      sampler: { pool: 'default' },
      prices: null,
    };
    assert.equal(moneyOf(costs), null);
    assert.deepEqual(costTable(costs)?.rows, [
      ['scored', '4', '2,000,000', '500,000', '60.0 s', 'docker 2.0 h', '30.0 min', ''],
      ['infra, thrown away', '2', 'unknown', 'unknown', 'unknown', 'unknown', 'unknown', ''],
      ['training', '', '', '', '', '', '', 'unknown'],
      ['total', '6', '≥ 2,000,000', '≥ 500,000', '≥ 60.0 s', '≥ docker 2.0 h', '≥ 30.0 min', 'unknown'],
    ]);
  });

  it('is refused with file and field if the price table is wrong', async () => {
    const refused = async (content: unknown, why: RegExp) => assert.rejects(readPrices(await write(content)), why);
    await refused({ currency: 'EUR', trainerHour: -1 }, /prices\.json: trainerHour: expected a number of at least 0/);
    await refused({ currency: 'EUR', gpuHour: 1 }, /prices\.json: file: .*gpuHour/);
    await refused('{', /expected a JSON object of prices/);
    await assert.rejects(
      readPrices(join(home, 'none.json')),
      /none\.json: currency: expected a currency, .* in a file that exists/,
    );
  });
});
