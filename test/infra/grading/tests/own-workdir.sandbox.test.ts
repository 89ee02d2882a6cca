import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { requireOwnWorkdir } from '../../../../infra/grading/tests/own-workdir.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { sandboxMaker } from '../../../helpers/sandbox/workspaces.ts';

it('refuses tests that write in their workdir where a local sandbox of root cannot give them one', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-own-'));
  try {
    await using maker = sandboxMaker(createLocalProvider({ root, stack: 'own' }), 'own', 'none');
    const sandbox = await maker.make();
    const required = requireOwnWorkdir(sandbox, { id: 'a', workdir: '/workspace' }, AbortSignal.timeout(60_000));
    // Without root there is one account, whose workdir it is.
    if (!sandbox.twoUids) return await required;
    await assert.rejects(required, { type: 'UnsupportedTask', message: /task a write in its workdir \/workspace/ });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
