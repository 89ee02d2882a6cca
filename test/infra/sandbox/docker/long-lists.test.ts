import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import Docker from 'dockerode';
import { createBytesBeside } from '../../../../infra/sandbox/docker/disk-beside.ts';
import { listChanged } from '../../../../infra/sandbox/docker/read-changes.ts';

it('reads no more of the list of changed paths than an agent may have made', async (t) => {
  const lines = [
    { Path: '/app', Kind: 0 },
    { Path: '/app/ä', Kind: 1 },
  ];
  const daemon = createServer(({ url }, response) => {
    if (url === '/containers/none/changes') response.writeHead(404).end('{"message":"no such container"}');
    else if (url === '/containers/same/changes') response.end('null');
    else response.end(JSON.stringify(lines));
  });
  await new Promise<void>((resolve) => daemon.listen(0, '127.0.0.1', resolve));
  t.after(() => daemon.close());
  const docker = new Docker({ host: '127.0.0.1', port: (daemon.address() as AddressInfo).port, protocol: 'http' });
  const size = Buffer.byteLength(JSON.stringify(lines));
  assert.deepEqual(await listChanged(docker.getContainer('one'), size), lines);
  assert.equal(await listChanged(docker.getContainer('one'), size - 1), null);
  assert.deepEqual(await listChanged(docker.getContainer('same')), []);
  await assert.rejects(listChanged(docker.getContainer('none')), /no such container/);
});

it('counts what a service has written that has ended', async () => {
  const ended = { SizeRw: 5, Mounts: [{ Type: 'volume', Name: 'shared' }] };
  const daemon = {
    listContainers: async ({ all }: { readonly all?: boolean }) => (all === true ? [ended] : []),
    df: async () => ({ Volumes: [{ Name: 'shared', UsageData: { Size: 7 } }] }),
  };
  assert.equal(await createBytesBeside(daemon as unknown as Docker)('sandbox'), 12);
});
