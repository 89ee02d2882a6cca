import { it } from 'node:test';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { sandboxMaker } from '../../helpers/sandbox/workspaces.ts';
import { roundTrips } from './round-trip.ts';

it('captures every edit of a workspace in a container, and reproduces it in a fresh one', async () => {
  const stack = `round-trip-${process.pid}`;
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  await roundTrips(maker, 2);
});
