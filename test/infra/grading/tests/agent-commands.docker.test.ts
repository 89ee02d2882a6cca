import { it } from 'node:test';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import { sandboxMaker } from '../../../helpers/sandbox/workspaces.ts';
import { checkAgentCommands } from './agent-commands.ts';

it('runs commands of tests in a container as another account', async () => {
  const stack = `as-agent-${process.pid}`;
  await using maker = sandboxMaker(createDockerProvider({ stack }), stack, 'temper-tasks:bookworm');
  await checkAgentCommands(maker);
});
