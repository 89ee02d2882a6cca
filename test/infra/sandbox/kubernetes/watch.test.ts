import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openCluster } from '../../../../infra/sandbox/kubernetes/client.ts';

const namespace = 'sandboxes';
const pod = (name: string): object => ({ metadata: { name, namespace, resourceVersion: '2' } });
const lines = [
  { kind: 'PodList', items: [] },
  { type: 'ADDED' },
  { type: 'MODIFIED', object: {} },
  { type: 'ERROR' },
  null,
  { type: 'ADDED', object: pod('real') },
];

describe('a watch that is answered with lines that are no changes', () => {
  let root: string;
  let server: Server;
  const { KUBECONFIG } = process.env;
  before(async () => {
    server = createServer((request, response) => {
      const watches = new URL(request.url ?? '', 'http://api').searchParams.has('watch');
      response.setHeader('content-type', 'application/json');
      if (!watches) response.end(JSON.stringify({ items: [], metadata: { resourceVersion: '1' } }));
      else response.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    assert.ok(address !== null && typeof address === 'object');
    root = await mkdtemp(join(tmpdir(), 'temper-watch-'));
    const config = {
      clusters: [
        { name: 'one', cluster: { server: `http://127.0.0.1:${address.port}`, 'insecure-skip-tls-verify': true } },
      ],
      users: [{ name: 'one', user: {} }],
      contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
      'current-context': 'one',
    };
    process.env.KUBECONFIG = join(root, 'kubeconfig');
    await writeFile(process.env.KUBECONFIG, JSON.stringify(config));
  });
  after(async () => {
    if (KUBECONFIG === undefined) delete process.env.KUBECONFIG;
    else process.env.KUBECONFIG = KUBECONFIG;
    server.closeAllConnections();
    server.close();
    await rm(root, { recursive: true });
  });

  it('tells the changes behind them, and leaves no rejection unhandled', async () => {
    const rejections: unknown[] = [];
    const note = (reason: unknown): void => void rejections.push(reason);
    process.on('unhandledRejection', note);
    const { informOfPods } = await openCluster(namespace);
    const informer = informOfPods('temper', () => undefined);
    try {
      const added = new Promise<string | undefined>((resolve, reject) => {
        informer.on('add', ({ metadata }) => resolve(metadata?.name));
        informer.on('error', reject);
      });
      await informer.start();
      assert.equal(await added, 'real');
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(rejections, []);
    } finally {
      await informer.stop();
      process.off('unhandledRejection', note);
    }
  });
});
