import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Informer, V1Pod } from '@kubernetes/client-node';
import { openCluster } from '../../../../infra/sandbox/kubernetes/client.ts';

const namespace = 'sandboxes';
const pod = (name: string): object => ({ metadata: { name, namespace, resourceVersion: '2' } });
const noPods = { items: [], metadata: { resourceVersion: '1' } };
const lines = [
  { kind: 'PodList', items: [] },
  { type: 'ADDED' },
  { type: 'MODIFIED', object: {} },
  { type: 'ERROR' },
  null,
  { type: 'ADDED', object: pod('real') },
];
const textOf = (...all: readonly unknown[]): string => all.map((line) => `${JSON.stringify(line)}\n`).join('');

describe('a watch that is answered in another form', () => {
  let answerList: (response: ServerResponse) => void;
  let answerWatch: (response: ServerResponse) => void;
  let root: string;
  let server: Server;
  const { KUBECONFIG } = process.env;
  before(async () => {
    server = createServer((request, response) => {
      const watches = new URL(request.url ?? '', 'http://api').searchParams.has('watch');
      response.setHeader('content-type', 'application/json');
      (watches ? answerWatch : answerList)(response);
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

  /** Follows Pods until `seen` resolves, and checks that no rejection is unhandled. */
  async function follow<Seen>(seen: (informer: Informer<V1Pod>) => Promise<Seen>): Promise<Seen> {
    const unhandled = Promise.withResolvers<never>();
    process.on('unhandledRejection', unhandled.reject);
    const { informOfPods } = await openCluster(namespace);
    const informer = informOfPods('temper', () => undefined);
    try {
      const saw = seen(informer);
      await informer.start();
      const result = await Promise.race([saw, unhandled.promise]);
      await Promise.race([new Promise((resolve) => setImmediate(resolve)), unhandled.promise]);
      return result;
    } finally {
      await informer.stop();
      process.off('unhandledRejection', unhandled.reject);
    }
  }

  it('tells the changes behind lines of another form', async () => {
    answerList = (response) => response.end(textOf(noPods));
    answerWatch = (response) => response.write(textOf(...lines));
    const added = await follow(
      (informer) =>
        new Promise<string | undefined>((resolve, reject) => {
          informer.on('add', ({ metadata }) => resolve(metadata?.name));
          informer.on('error', reject);
        }),
    );
    assert.equal(added, 'real');
  });

  it('fails, so that it begins again, if its next list is of something else', async () => {
    const lists: unknown[] = [noPods];
    answerList = (response) => response.end(textOf(lists.shift() ?? { items: [{}] }));
    answerWatch = (response) => response.end(textOf({ type: 'ERROR', object: { code: 410 } }));
    const error = await follow((informer) => new Promise((resolve) => informer.on('error', resolve)));
    assert.match(String(error), /expected a list of Pods/);
  });
});
