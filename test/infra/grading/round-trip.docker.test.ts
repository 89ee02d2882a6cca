import { it } from 'node:test';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import { sandboxMaker } from '../../helpers/sandbox/workspaces.ts';
import { roundTrips } from './round-trip.ts';

it('whatever an agent does to its workspace, a container captures it and a fresh one gets it', async () => {
  const stack = `round-trip-${process.pid}`;
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  await roundTrips(maker, 2);
});
