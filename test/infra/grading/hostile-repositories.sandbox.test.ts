import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import { sandboxMaker } from '../../helpers/sandbox/workspaces.ts';
import { hostileRoundTrips } from './hostile-repositories.ts';

/** More cases than usual, for a run by hand; and the seed of an earlier run. */
const cases = Number(process.env.TEMPER_TEST_HOSTILE_CASES ?? 3);
const seed = Number(process.env.TEMPER_TEST_HOSTILE_SEED ?? Date.now() % 2 ** 31);

it(`prepares workspaces with any repositories inside, and reproduces every edit of them (${cases} cases, seed ${seed})`, async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-hostile-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'hostile' }), 'hostile', 'none');
    await hostileRoundTrips(maker, cases, seed);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
