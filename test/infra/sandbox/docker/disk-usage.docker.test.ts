import assert from 'node:assert/strict';
import { it } from 'node:test';
import Docker from 'dockerode';
import { readDiskUsage } from '../../../../infra/sandbox/docker/disk-usage.ts';

it('the daemon tells all that ask at once what takes its disk, although it may answer one at a time', async () => {
  const asked = Array.from({ length: 6 }, async () => (await readDiskUsage(new Docker())) as { LayersSize: number });
  for (const { LayersSize } of await Promise.all(asked)) assert.ok(LayersSize > 0);
});

it('a daemon that answers others for too long counts as unavailable', async () => {
  const refusal = new Error('(HTTP code 500) server error - a disk usage operation is already running');
  const busy = { df: () => Promise.reject(Object.assign(refusal, { statusCode: 500 })) };
  await assert.rejects(readDiskUsage(busy, 0), { type: 'SandboxUnavailable', message: /got no turn in 0 s/ });
});
