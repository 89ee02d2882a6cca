import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, it } from 'node:test';
import { parseDataSetAddress } from '../../../../infra/data-sets/address.ts';
import { hubAccountFrom } from '../../../../infra/data-sets/hub-account.ts';
import { useName } from '../../../../infra/data-sets/uses.ts';
import { createDataSetFixture, failure, sweRow } from '../../../helpers/tasks/data-set-fixture.ts';

const commit = '0123456789abcdef0123456789abcdef01234567';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const gitBlob = (text: string): string =>
  createHash('sha1')
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest('hex');
const linesOf = (id: string): string => `${JSON.stringify({ ...sweRow, instance_id: id })}\n`;
const files: Readonly<Record<string, string>> = {
  'README.md': 'read me',
  'data/train-00000.jsonl': linesOf('a'),
  'data/test-00000.jsonl': linesOf('b'),
};

let server: Server;
let hub: string;
let asked: string[] = [];
/** The hub's file list and replies, which each test may change. */
let served: { siblings: readonly unknown[]; body(path: string): string; truncate: boolean };

before(async () => {
  server = createServer((request, response) => {
    const url = new URL(request.url ?? '', hub);
    asked.push(url.pathname);
    if (url.pathname === '/api/datasets/SWE-Gym/Small/revision/main') {
      return response.end(JSON.stringify({ id: 'SWE-Gym/Small', sha: commit, siblings: served.siblings }));
    }
    const path = url.pathname.split(`/datasets/SWE-Gym/Small/resolve/${commit}/`)[1];
    if (path !== undefined) return response.writeHead(302, { location: `/cdn/${path}` }).end();
    const content = files[url.pathname.slice('/cdn/'.length)];
    if (content === undefined) return response.writeHead(404).end('{"error":"Repository not found"}');
    const body = served.body(content);
    response.writeHead(200, { 'content-length': Buffer.byteLength(body) + (served.truncate ? 5 : 0) });
    response.write(body);
    if (served.truncate) response.destroy();
    else response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  hub = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

const siblingsOf = () =>
  Object.entries(files).map(([rfilename, text], index) => ({
    rfilename,
    size: Buffer.byteLength(text),
    blobId: gitBlob(text),
    ...(index === 1 && { lfs: { sha256: sha256(text), size: text.length } }),
  }));
beforeEach(() => {
  asked = [];
  served = { siblings: siblingsOf(), body: (text) => text, truncate: false };
});

it('downloads a data set of the hub once per host and then reads it offline', async () => {
  await using fixture = await createDataSetFixture();
  const set = 'swe-bench:hub:SWE-Gym/Small';
  await assert.rejects(
    fixture.tasks.list(set),
    failure('UnknownTask', /hub:SWE-Gym\/Small@main: not in this host's cache .*main\.json.*downloads are off here/),
  );
  const online = fixture.tasksWith({ offline: false, hub });
  assert.deepEqual(await online.list(`${set}?split=train`), [`${set}?split=train#a`]);
  assert.deepEqual(asked, [
    '/api/datasets/SWE-Gym/Small/revision/main',
    `/datasets/SWE-Gym/Small/resolve/${commit}/data/train-00000.jsonl`,
    '/cdn/data/train-00000.jsonl',
  ]);
  await assert.rejects(
    fixture.tasks.list(set),
    failure('UnknownTask', /data\/test-00000\.jsonl of hub:SWE-Gym\/Small@main: not in this host's cache/),
  );
  assert.deepEqual(await online.list(set), [`${set}#b`, `${set}#a`]);
  const before = asked.length;
  const [address = ''] = await fixture.tasks.list(set);
  assert.equal((await fixture.tasks.resolve(address)).id, 'b');
  assert.equal(asked.length, before);
});

it('records which downloads a data set needs, by which retention keeps them', async () => {
  await using fixture = await createDataSetFixture();
  const online = fixture.tasksWith({ offline: false, hub });
  const sets = ['swe-bench:hub:SWE-Gym/Small', `swe-bench:${hub}/cdn/data/train-00000.jsonl`];
  const uses: string[] = [];
  for (const set of sets) {
    const [address = ''] = await online.list(set);
    await fixture.tasks.resolve(address);
    const name = useName(parseDataSetAddress(address) ?? assert.fail());
    uses.push(await readFile(join(fixture.root, '../cache/data-sets/uses', name), 'utf8'));
  }
  assert.equal(uses[0], `hub/SWE-Gym/Small/${commit}\n`);
  assert.match(uses[1] ?? '', /^urls\/[0-9a-f]{24}\n$/);
});

it('downloads a file once when several processes want it at the same time', async () => {
  await using fixture = await createDataSetFixture();
  const readers = Array.from({ length: 4 }, () => fixture.tasksWith({ offline: false, hub }));
  await Promise.all(readers.map((tasks) => tasks.list(`swe-bench:${hub}/cdn/data/train-00000.jsonl`)));
  assert.deepEqual(asked, ['/cdn/data/train-00000.jsonl']);
});

const wrong: readonly (readonly [string, () => void, RegExp])[] = [
  [
    'whose content differs from its checksum',
    () => {
      served.body = (text) => text.replace('a', 'b');
    },
    /expected train-00000\.jsonl, got sha256 [0-9a-f]{64} instead of [0-9a-f]{64}/,
  ],
  [
    'that is truncated',
    () => {
      served.truncate = true;
    },
    /expected train-00000\.jsonl, got /,
  ],
  [
    'whose name leaves the cache',
    () => {
      served.siblings = [{ rfilename: '../../evil.jsonl' }];
    },
    /expected a data set of http.*got HTTP status 200/,
  ],
];
for (const [what, prepare, message] of wrong) {
  it(`rejects a file ${what} and keeps nothing of it`, async () => {
    await using fixture = await createDataSetFixture();
    const set = 'swe-bench:hub:SWE-Gym/Small?split=train';
    prepare();
    await assert.rejects(fixture.tasksWith({ offline: false, hub }).list(set), failure('UnknownTask', message));
    served = { siblings: siblingsOf(), body: (text) => text, truncate: false };
    assert.equal((await fixture.tasksWith({ offline: false, hub }).list(set)).length, 1);
  });
}

it('checks a small file by its git object id', async () => {
  await using fixture = await createDataSetFixture();
  served.body = (text) => text.replace('b', 'c');
  await assert.rejects(
    fixture.tasksWith({ offline: false, hub }).list('swe-bench:hub:SWE-Gym/Small/data/test-00000.jsonl'),
    failure('UnknownTask', /got git-blob [0-9a-f]{40} instead of/),
  );
});

it('checks a file from a URL against the digest in its address', async () => {
  await using fixture = await createDataSetFixture();
  const online = fixture.tasksWith({ offline: false });
  const url = `${hub}/cdn/data/train-00000.jsonl?download=true`;
  const right = `swe-bench:${url}&sha256=${sha256(linesOf('a'))}`;
  assert.deepEqual(await online.list(right), [`${right}#a`]);
  await assert.rejects(
    online.list(`swe-bench:${url}&sha256=${'0'.repeat(64)}`),
    failure('UnknownTask', /got sha256 [0-9a-f]{64} instead of 0{64}/),
  );
});

it('names the address of a missing file or data set', async () => {
  await using fixture = await createDataSetFixture();
  const online = fixture.tasksWith({ offline: false, hub });
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      'swe-bench:hub:no/body',
      /hub:no\/body@main: expected a data set of .*got HTTP status 404: .*not found.*if it is private or gated, set HF_TOKEN/,
    ],
    [
      'open-instruct:hub:SWE-Gym/Small',
      /expected files of this format, got 3 other files: README\.md, data\/train-00000\.jsonl/,
    ],
    [`swe-bench:${hub}/cdn/none.jsonl`, /none\.jsonl, got HTTP status 404/],
    [`module:${hub}/cdn/tasks.mjs`, /expected the path of a module, got the address of a download/],
    [`module:${fixture.root}/tasks.mjs`, /workers run no modules; pack its tasks with `temper tasks add`/],
    ['swe-bench:http://127.0.0.1:1/a.jsonl', /expected a\.jsonl, got .*(ECONNREFUSED|bad port)/],
  ];
  for (const [set, message] of cases) await assert.rejects(online.list(set), failure('UnknownTask', message), set);
});

it('reads a private data set with the token of an account, and sends that to the hub alone', async () => {
  const token = 'hf_secret';
  const seen: { readonly host: string; readonly authorization: string | null }[] = [];
  const serve = async (reply: (path: string, response: ServerResponse) => void) => {
    const one = createServer(({ headers, url = '' }, response) => {
      seen.push({ host: headers.host ?? '', authorization: headers.authorization ?? null });
      reply(url, response);
    }).listen(0, '127.0.0.1');
    await once(one, 'listening');
    const host = `127.0.0.1:${(one.address() as AddressInfo).port}`;
    return { host, url: `http://${host}`, [Symbol.dispose]: () => one.close() };
  };
  const text = linesOf('a');
  const siblings = [{ rfilename: 'rows.jsonl', size: text.length, blobId: gitBlob(text) }];
  using elsewhere = await serve((_, response) => response.end(text));
  using own = await serve((path, response) => {
    const given = seen.at(-1)?.authorization;
    if (given !== `Bearer ${token}`) response.writeHead(401).end('{"error":"Access is restricted"}');
    else if (path.startsWith('/api/')) response.end(JSON.stringify({ sha: commit, siblings }));
    else response.writeHead(302, { location: `${elsewhere.url}/signed` }).end();
  });
  await using fixture = await createDataSetFixture();
  const set = 'swe-bench:hub:some/private';
  const list = (given: string | null) => fixture.tasksWith({ offline: false, hub: own.url, token: given }).list(set);
  await assert.rejects(
    list(null),
    failure('UnknownTask', /401: Access is restricted; if it is private.* set HF_TOKEN/),
  );
  await assert.rejects(list('hf_old'), (error: Error) => {
    assert.match(error.message, /the hub does not accept HF_TOKEN/);
    assert.doesNotMatch(error.message, /hf_old/);
    return true;
  });
  assert.deepEqual(await list(token), [`${set}#a`]);
  const sent = seen.filter(({ authorization }) => authorization === `Bearer ${token}`).map(({ host }) => host);
  assert.deepEqual(sent, [own.host, own.host]);
  assert.deepEqual(seen.at(-1), { host: elsewhere.host, authorization: null });
  assert.deepEqual(await fixture.tasks.list(set), [`${set}#a`]);
});

it('takes the account of the hub from its own variables, and shows no token that cannot be one', () => {
  assert.deepEqual(hubAccountFrom({}), { url: 'https://huggingface.co', token: null });
  assert.deepEqual(hubAccountFrom({ HF_TOKEN: ' hf_a\n', HF_ENDPOINT: 'https://hub.example/' }), {
    url: 'https://hub.example',
    token: 'hf_a',
  });
  assert.throws(
    () => hubAccountFrom({ HF_TOKEN: 'hf_a hf_b' }),
    (error: Error) => /^HF_TOKEN: expected a token/.test(error.message) && !error.message.includes('hf_a'),
  );
});
