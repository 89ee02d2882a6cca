import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { openProviders } from '../../../../infra/sandbox/providers.ts';

it('ends a host at its start whose kubeconfig is missing, cannot be read, or names no cluster', async () => {
  const root = await mkdtemp(join(tmpdir(), 'temper-kubeconfig-'));
  const { KUBECONFIG, HOME } = process.env;
  const refusal = async (kubeconfig: string, message: RegExp): Promise<void> => {
    process.env.KUBECONFIG = kubeconfig;
    process.env.HOME = root;
    const kubernetes = { namespace: 'sandboxes' };
    const opened = openProviders({ stack: 'stack', root, preferred: 'kubernetes', kubernetes });
    await assert.rejects(opened, { type: 'SandboxUnavailable', message });
  };
  try {
    await refusal('', /expected KUBECONFIG, .* to name a cluster, got none of them; set KUBECONFIG/);
    const file = join(root, 'kubeconfig');
    await refusal(file, /expected KUBECONFIG to name a readable kubeconfig, got none; .*ENOENT/);
    await writeFile(file, '{ "current-context": "absent", "contexts": [], "clusters": [], "users": [] }');
    await refusal(file, /expected KUBECONFIG to name a cluster in its current context, got none/);
  } finally {
    if (KUBECONFIG === undefined) delete process.env.KUBECONFIG;
    else process.env.KUBECONFIG = KUBECONFIG;
    if (HOME === undefined) delete process.env.HOME;
    else process.env.HOME = HOME;
    await rm(root, { recursive: true });
  }
});
