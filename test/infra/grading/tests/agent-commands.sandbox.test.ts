import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { sandboxMaker } from '../../../helpers/sandbox/workspaces.ts';
import { checkAgentCommands } from './agent-commands.ts';

it('runs commands of tests in a local sandbox as another account', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-as-agent-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'as-agent' }), 'as-agent', 'none');
    await checkAgentCommands(maker);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
