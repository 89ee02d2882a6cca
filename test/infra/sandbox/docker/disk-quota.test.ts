import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import Docker from 'dockerode';
import { findDiskQuota, quotaOptions } from '../../../../infra/sandbox/docker/disk-quota.ts';

it('the kernel limits the disk of a container of overlay2 on xfs that is mounted with pquota, a little above its own limit', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'quota-'));
  t.after(() => rm(directory, { recursive: true }));
  let info: unknown;
  const daemon = createServer((_, response) => response.end(JSON.stringify(info)));
  await new Promise<void>((resolve) => daemon.listen(0, '127.0.0.1', resolve));
  t.after(() => daemon.close());
  const docker = new Docker({ host: '127.0.0.1', port: (daemon.address() as AddressInfo).port, protocol: 'http' });
  const table = join(directory, 'mounts');
  const find = async (driver: string, status: readonly (readonly string[])[] | null, mounts: readonly string[]) => {
    info = { Driver: driver, DriverStatus: status, DockerRootDir: '/data/docker' };
    await writeFile(table, `${mounts.join('\n')}\n`);
    return findDiskQuota(docker, table);
  };
  const xfs = [['Backing Filesystem', 'xfs']];
  const root = '/dev/vda / ext4 rw,prjquota 0 0';
  const data = (options: string) => `/dev/vdb /data xfs ${options} 0 0`;
  const limited = await find('overlay2', xfs, [root, data('rw,relatime,prjquota')]);
  assert.deepEqual(limited, { enforced: true, root: '/data/docker', driver: 'overlay2 on xfs' });
  assert.equal((await find('overlay2', xfs, [root, data('rw,noquota')])).enforced, false);
  assert.equal((await find('overlay2', xfs, ['/dev/vdc /other xfs rw,prjquota 0 0'])).enforced, false);
  const others = [await find('overlay2', [['Backing Filesystem', 'extfs']], [root]), await find('btrfs', null, [root])];
  assert.deepEqual(
    others.map(({ enforced, driver }) => [enforced, driver]),
    [
      [false, 'overlay2 on extfs'],
      [false, 'btrfs'],
    ],
  );
  assert.deepEqual(quotaOptions(limited, 1_000), { StorageOpt: { size: '1256m' } });
  assert.deepEqual(quotaOptions(limited, 4_001), { StorageOpt: { size: '5002m' } });
  assert.deepEqual(quotaOptions({ ...limited, enforced: false }, 1_000), {});
});
