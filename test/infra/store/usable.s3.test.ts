import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createDirectory } from '../../../infra/store/directory.ts';
import type { ListedObject, Objects } from '../../../infra/store/objects.ts';
import { openBucket } from '../../../infra/store/s3/open.ts';
import { requireUsable } from '../../../infra/store/usable.ts';
import { startCarelessS3 } from '../../helpers/store/careless-s3.ts';
import { startS3Server } from '../../helpers/store/s3-server.ts';

const server = await startS3Server();
const root = await mkdtemp(join(tmpdir(), 'temper-usable-'));
after(async () => {
  await server.close();
  await rm(root, { recursive: true, force: true });
});

const kinds: Readonly<Record<string, () => Promise<Objects>>> = {
  'a directory': async () => createDirectory(await mkdtemp(join(root, 'home-'))),
  'a bucket': async () => openBucket(server.place()),
};

for (const [kind, open] of Object.entries(kinds)) {
  describe(`a stack on ${kind}`, () => {
    it('may use it, and leaves nothing of the proof behind', async () => {
      const objects = await open();
      await requireUsable(objects);
      assert.deepEqual(await all(objects.list('hosts')), []);
    });
  });
}

describe('a store that cannot be used is refused', () => {
  for (const condition of ['if-none-match', 'if-match'] as const) {
    it(`because it ignores ${condition}`, async () => {
      const careless = await startCarelessS3([condition]);
      try {
        const objects = openBucket(server.place({ endpoint: careless.url }));
        await assert.rejects(requireUsable(objects), {
          type: 'StoreUnavailable',
          message: new RegExp(`^the store s3://.* ignores the condition ${condition} `, 'i'),
        });
        assert.deepEqual(await all(objects.list('hosts')), []);
      } finally {
        await careless.close();
      }
    });
  }

  it('because the versions that it reads match no condition', async () => {
    const careless = await startCarelessS3([], { weakTags: true });
    try {
      const objects = openBucket(server.place({ endpoint: careless.url }));
      await assert.rejects(requireUsable(objects), {
        type: 'StoreUnavailable',
        message: /the version of a read, W\/".*", matches no condition of a write; a proxy that compresses/,
      });
    } finally {
      await careless.close();
    }
  });

  it('because its clock is wrong', async () => {
    const careless = await startCarelessS3([], { clockAheadMs: -10 * 60_000 });
    try {
      const objects = openBucket(server.place({ endpoint: careless.url }));
      await assert.rejects(requireUsable(objects), {
        message: /its clock and that of this host differ by 6\d\d s; let NTP set both/,
      });
    } finally {
      await careless.close();
    }
  });

  it('because the bucket does not exist', async () => {
    const objects = openBucket(server.place({ bucket: 'no-such-bucket' }));
    await assert.rejects(requireUsable(objects), { message: /NoSuchBucket/ });
  });

  it('because the account may only read', async () => {
    const place = server.place();
    await openBucket(place).replace('hosts/one', new TextEncoder().encode('1'), null);
    Object.assign(process.env, await server.addReader());
    try {
      const objects = openBucket(place);
      assert.deepEqual((await all(objects.list('hosts'))).length, 1);
      await assert.rejects(requireUsable(objects), {
        type: 'StoreUnavailable',
        message: /^cannot .*: HTTP 403 AccessDenied .*; check the credentials and their rights$/,
      });
    } finally {
      Object.assign(process.env, server.env);
    }
  });

  it('because the directory cannot be written', async () => {
    const file = join(root, 'no-directory');
    await writeFile(file, '');
    await assert.rejects(requireUsable(createDirectory(file)), { type: 'StoreUnavailable', message: /cannot use / });
  });
});

async function all(list: AsyncIterable<ListedObject>): Promise<readonly ListedObject[]> {
  const found: ListedObject[] = [];
  for await (const one of list) found.push(one);
  return found;
}
