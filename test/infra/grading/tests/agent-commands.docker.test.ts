import { it } from 'node:test';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import { sandboxMaker } from '../../../helpers/sandbox/workspaces.ts';
import { runsAsAgent } from './agent-commands.ts';

it('tests in a container run code as programs of another account', async () => {
  const stack = `as-agent-${process.pid}`;
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  await runsAsAgent(maker);
});
