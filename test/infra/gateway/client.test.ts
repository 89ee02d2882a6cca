import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createGatewayControl } from '../../../infra/gateway/client.ts';

it('the control client connects again when a gateway refused the connection for a moment', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'temper-client-'));
  const path = join(dir, 'gateway.sock');
  // Leaves a socket without a listener, as a killed gateway does.
  const killed = createServer();
  await once(killed.listen(join(dir, 'bound.sock')), 'listening');
  await rename(join(dir, 'bound.sock'), path);
  await new Promise((resolve) => killed.close(resolve));
  const control = createGatewayControl([path]);
  const restarted = createServer((_, response) => response.end('null'));
  try {
    assert.equal(await control.health(), false);
    const asked = control.status('a.1');
    await once(restarted.listen(join(dir, 'restarted.sock')), 'listening');
    await rename(join(dir, 'restarted.sock'), path);
    assert.equal(await asked, null);
  } finally {
    await control.end();
    restarted.closeAllConnections();
    restarted.close();
    await rm(dir, { recursive: true, force: true });
  }
});
