import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { it } from 'node:test';
import Docker from 'dockerode';
import { readLines } from '../../../../infra/sandbox/docker/changed-lines.ts';
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
  const bytes = Buffer.byteLength(JSON.stringify(lines));
  const limits = { bytes, lines: 2 };
  assert.deepEqual(await listChanged(docker.getContainer('one'), limits), lines);
  assert.equal(await listChanged(docker.getContainer('one'), { ...limits, bytes: bytes - 1 }), null);
  assert.equal(await listChanged(docker.getContainer('one'), { ...limits, lines: 1 }), null);
  assert.deepEqual(await listChanged(docker.getContainer('same')), []);
  await assert.rejects(listChanged(docker.getContainer('none')), /no such container/);
});

it('parses a list of changed paths piece by piece, wherever it is cut, and whatever names are in it', async () => {
  const names = ['/a"}', '/\\', '/},{"Path":"/etc"', '/[]', '/ä\u{1f600}', '/\n'];
  const lines = names.flatMap((Path) => [0, 1, 2].map((Kind) => ({ Path, Kind })));
  const text = Buffer.from(`${JSON.stringify(lines, null, 1)}\n`);
  const read = (pieces: readonly Buffer[], most = lines.length) =>
    readLines(Readable.from(pieces), { bytes: text.length, lines: most });
  for (const size of [1, 7, text.length]) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      text.subarray(index * size, (index + 1) * size),
    );
    assert.deepEqual(await read(pieces), lines);
  }
  // What follows the line above the limit is not even looked at.
  assert.equal(await read([text.subarray(0, 200), Buffer.from('{"no JSON"}')], 1), null);
  await assert.rejects(read([text.subarray(0, -10)]), /expected the end of a list of changed paths/);
});

it('counts what a service has written that has ended', async () => {
  const ended = { SizeRw: 5, Mounts: [{ Type: 'volume', Name: 'shared' }] };
  const daemon = {
    listContainers: async ({ all }: { readonly all?: boolean }) => (all === true ? [ended] : []),
    df: async () => ({ Volumes: [{ Name: 'shared', UsageData: { Size: 7 } }] }),
  };
  assert.equal(await createBytesBeside(daemon as unknown as Docker)('sandbox'), 12);
});
