import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { isAtLeast, locateTemporal } from '../../../infra/temporal/executable.ts';
import type { ReleaseSource } from '../../../infra/temporal/release.ts';

const current = '#!/bin/sh\necho "temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)"\n';
const old = '#!/bin/sh\necho "temporal version 1.2.0 (Server 1.26.2, UI 2.34.0)"\n';

describe('locating the temporal executable', () => {
  let scratch = '';
  let archive: Buffer = Buffer.alloc(0);
  let server: Server;
  let baseUrl = '';
  let requests: string[] = [];
  before(async () => {
    const tar = pack();
    tar.entry({ name: 'LICENSE' }, 'a licence');
    tar.entry({ name: 'temporal', mode: 0o755 }, current);
    tar.finalize();
    archive = await buffer(tar.pipe(createGzip()));
    server = createServer((request, response) => {
      requests.push(request.url ?? '');
      if (request.url?.startsWith('/moved/'))
        response.writeHead(302, { location: request.url.slice('/moved'.length) }).end();
      else if (request.url?.startsWith('/gone/')) response.writeHead(404).end();
      else response.end(archive);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === 'object');
    baseUrl = `http://127.0.0.1:${address.port}`;
  });
  after(() => server.close());
  beforeEach(async () => {
    requests = [];
    scratch = await mkdtemp(join(tmpdir(), 'temper-locate-'));
    await mkdir(join(scratch, 'bin'));
  });
  afterEach(() => rm(scratch, { recursive: true, force: true }));

  const digest = (): string => createHash('sha256').update(archive).digest('hex');
  const release = (path: string, checksum: string): ReleaseSource => ({
    baseUrl: `${baseUrl}${path}`,
    checksums: { linux_amd64: checksum, linux_arm64: checksum, darwin_amd64: checksum, darwin_arm64: checksum },
    env: {},
  });
  async function locate(
    source: ReleaseSource,
    path = join(scratch, 'bin'),
  ): Promise<{ path: string; source: string; said: string[] }> {
    const said: string[] = [];
    const env = { PATH: path, XDG_CACHE_HOME: join(scratch, 'cache'), HOME: scratch };
    const found = await locateTemporal({ env, progress: (line) => said.push(line), release: source });
    return { ...found, said };
  }
  async function install(name: string, script: string): Promise<void> {
    await writeFile(join(scratch, 'bin', name), script);
    await chmod(join(scratch, 'bin', name), 0o755);
  }

  it('takes the one on PATH without a download', async () => {
    await install('temporal', current);
    const { path, source, said } = await locate(release('', digest()), `${join(scratch, 'bin')}:/usr/bin:/bin`);
    assert.deepEqual([path, source, said, requests], [join(scratch, 'bin/temporal'), 'PATH', [], []]);
  });

  it('downloads through redirects, checks the digest, and finds it in the cache the next time', async () => {
    const first = await locate(release('/moved', digest()));
    assert.equal(first.source, 'download');
    assert.equal(requests.length, 2);
    const second = await locate(release('/moved', digest()));
    assert.deepEqual([second.path, second.source, second.said, requests.length], [first.path, 'cache', [], 2]);
  });

  it('downloads once when two ask at the same time', async () => {
    const found = await Promise.all([locate(release('', digest())), locate(release('', digest()))]);
    assert.deepEqual([found.map(({ source }) => source).sort(), requests.length], [['cache', 'download'], 1]);
  });

  it('discards a download with another digest, and names both digests', async () => {
    await assert.rejects(locate(release('', 'f'.repeat(64))), (error: Error) => {
      assert.match(error.message, new RegExp(`sha256 f{64}, got ${digest()}`));
      return true;
    });
    const [kept] = await readdir(join(scratch, 'cache/temper/temporal'));
    assert.deepEqual(await readdir(join(scratch, 'cache/temper/temporal', kept ?? '')), []);
  });

  it('reports every attempt and what to install when all fail', async () => {
    await install('temporal', old);
    await assert.rejects(locate(release('/gone', digest()), `${join(scratch, 'bin')}:/bin`), (error: Error) => {
      for (const part of [
        /1\.5\.0 or newer, got 1\.2\.0/,
        /answer 200, got 404/,
        /`go` is not on PATH/,
        /Install the Temporal CLI/,
      ]) {
        assert.match(error.message, part);
      }
      return true;
    });
  });

  it("builds it with go when the download fails, and passes go's error on when that fails too", async () => {
    await install(
      'go',
      '#!/bin/sh\necho "some/package" >&2\nwhile [ "$1" != "-o" ]; do shift; done\nprintf built > "$2"\nchmod +x "$2"\n',
    );
    const path = `${join(scratch, 'bin')}:/usr/bin:/bin`;
    const built = await locate(release('/gone', digest()), path);
    assert.equal(built.source, 'build');
    await rm(join(scratch, 'cache'), { recursive: true });
    await install('go', '#!/bin/sh\necho "go.mod requires go >= 9" >&2\nexit 1\n');
    await assert.rejects(
      locate(release('/gone', digest()), path),
      /building it: .*ended with 1: go\.mod requires go >= 9/,
    );
  });
});

it('versions are compared by their numbers', () => {
  assert.deepEqual(
    [
      isAtLeast('1.10.0', '1.9.9'),
      isAtLeast('1.5', '1.5.0'),
      isAtLeast('1.4.9', '1.5.0'),
      isAtLeast('2.0.0-rc.1', '1.5.0'),
    ],
    [true, true, false, true],
  );
});
