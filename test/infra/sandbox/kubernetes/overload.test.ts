import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import { ThrottledFailure } from '../../../../workflows/contracts/throttled-failure.ts';

describe('a Kubernetes API that takes no more requests', () => {
  let retryAfter: string | undefined;
  const server = createServer((_request, response) => {
    response.writeHead(429, {
      'content-type': 'application/json',
      ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
    });
    response.end(JSON.stringify({ kind: 'Status', status: 'Failure', code: 429, message: 'too many requests' }));
  });
  let home = '';

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    home = await mkdtemp(join(tmpdir(), 'temper-overload-'));
    process.env.KUBECONFIG = join(home, 'kubeconfig');
    const { port } = server.address() as AddressInfo;
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'one', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'one', user: {} }],
      contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
      'current-context': 'one',
    };
    await writeFile(process.env.KUBECONFIG, JSON.stringify(kubeconfig));
  });

  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(home, { recursive: true, force: true });
  });

  for (const [asked, retryAfterMs] of [
    ['7', 7_000],
    [undefined, null],
  ] as const) {
    it(`is waited for, with the pause that it asks for: ${asked ?? 'none'}`, async () => {
      retryAfter = asked;
      const provider = createKubernetesProvider({ stack: 'overload', namespace: 'sandboxes' });
      await assert.rejects(provider.list('overload'), (error) => {
        assert(error instanceof ThrottledFailure, String(error));
        assert.equal(error.retryAfterMs, retryAfterMs);
        assert.match(error.message, /too many requests/);
        return true;
      });
      await provider.close();
    });
  }
});
