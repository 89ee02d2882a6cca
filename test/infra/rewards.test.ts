import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRewards } from '../../infra/rewards.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';

const log = { digest: 'a'.repeat(64), size: 1, mediaType: 'text/plain' };
const verdict: Verdict = {
  kind: 'graded',
  value: 1,
  exitCode: 0,
  passed: 3,
  failed: 1,
  log,
  subject: 's',
  grader: 'g',
};

describe('reward policies', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-rewards-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  async function load(name: string, text: string) {
    const path = join(directory, name);
    await writeFile(path, text);
    return createRewards([path]);
  }

  it("are temper's own, and the functions of the operator's modules", async () => {
    const rewards = await load(
      'good.mjs',
      `export default ({ rewardOf }) => [
        { name: 'share', reward: ({ passed, failed }) => passed / (passed + failed) },
        { name: 'halved', reward: async (verdict) => rewardOf(verdict, 'binary') / 2 },
      ];`,
    );
    const values = ['share', 'halved', 'binary'].map((policy) => rewards.rewardOf(verdict, policy));
    assert.deepEqual(await Promise.all(values), [0.75, 0.5, 1]);
    assert.throws(() => rewards.require('shares'), {
      type: 'InvalidInput',
      message:
        /expected one of binary, fraction, fail-to-pass, share, halved, got shares; name its module in TEMPER_REWARDS/,
    });
  });

  it('never make a reward of a failing function, or of what is no number from 0 to 1', async () => {
    const results = ['2', '-0.1', 'NaN', "'1'", 'undefined', '(() => { throw new Error("no") })()'];
    for (const [index, result] of results.entries()) {
      const rewards = await load(`bad-${index}.mjs`, `export default { name: 'bad', reward: () => ${result} };`);
      await assert.rejects(
        rewards.rewardOf(verdict, 'bad'),
        { type: 'InvalidReward', message: /reward policy bad/ },
        result,
      );
    }
  });

  it('are refused at the start of a process when a module is wrong', async () => {
    const cases = [
      ['none.mjs', 'export const x = 1;', /none\.mjs: expected a default export with rewards, got none/],
      ['name.mjs', "export default { name: 'A', reward() {} };", /name: expected up to 40/],
      ['taken.mjs', "export default { name: 'binary', reward() {} };", /no other reward policy has, got binary/],
      ['function.mjs', "export default { name: 'a', reward: 1 };", /reward: expected a function/],
    ] as const;
    for (const [name, text, message] of cases)
      await assert.rejects(load(name, text), { type: 'InvalidInput', message });
    await assert.rejects(createRewards(['/nonexistent/reward.mjs']), {
      type: 'InvalidInput',
      message: /it cannot be loaded/,
    });
  });
});
