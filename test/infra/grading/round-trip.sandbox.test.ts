import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import { sandboxMaker } from '../../helpers/sandbox/workspaces.ts';
import { roundTrips } from './round-trip.ts';

it('captures every edit of a workspace in a local sandbox, and reproduces it in a fresh one', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-round-trip-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'round-trip' }), 'round-trip', 'none');
    await roundTrips(maker, 10);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
