import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { startPolicyServer } from '../../infra/kits/embedded-policy/index.ts';
import { readConfig } from '../../infra/settings/config.ts';
import { watchListenTls } from '../../workers/watch-listen-tls.ts';
import { certificateAt, createCertificate, fingerprintOf } from '../helpers/certificate.ts';
import { until } from '../helpers/until.ts';

const listen = '127.0.0.1';

it('a renewed certificate is served without a restart, and a broken one is logged and leaves the old one in use', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-renewed-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const files = { TEMPER_LISTEN_CERT: join(home, 'tls.crt'), TEMPER_LISTEN_KEY: join(home, 'tls.key') };
  const renew = async ({ cert, key }: { readonly cert: string; readonly key: string }): Promise<void> => {
    await writeFile(files.TEMPER_LISTEN_CERT, cert);
    await writeFile(files.TEMPER_LISTEN_KEY, key, { mode: 0o600 });
  };
  const [first, second, third] = [
    await createCertificate(listen),
    await createCertificate(listen),
    await createCertificate(listen),
  ];
  await renew(first);
  const { modelDir, listenTls } = readConfig({ TEMPER_HOME: home, ...files });
  const read = listenTls ?? assert.fail('expected a certificate');
  const tls = await read();
  const server = await startPolicyServer({ port: 0, listen, tls, modelDir, root: join(home, 'policy') });
  t.after(() => server.close());
  const stop = new AbortController();
  const said: string[] = [];
  const say = (text: unknown): void => void said.push(String(text));
  const log = { info: say, warn: say };
  const ended = watchListenTls({ read, served: tls, serve: server.serveTls, log, everyMs: 20 }, stop.signal);
  const isServed = (pair: typeof first) => async () => (await certificateAt(server.url)) === fingerprintOf(pair.cert);
  assert.ok(await isServed(first)());

  await renew(second);
  await until(isServed(second));
  said.length = 0;
  // The certificate comes before its key.
  await writeFile(files.TEMPER_LISTEN_CERT, third.cert);
  const isRefusal = (text: string): boolean =>
    /cannot be served yet, and the one in use is kept: .*tls\.crt/.test(text);
  await until(() => said.some(isRefusal));
  assert.ok(await isServed(second)());
  // Each is refused for another reason than the last, which is logged once.
  for (const file of [files.TEMPER_LISTEN_KEY, files.TEMPER_LISTEN_CERT]) {
    said.length = 0;
    await writeFile(file, '');
    await until(() => said.some(isRefusal));
    assert.ok(await isServed(second)());
  }
  said.length = 0;
  await renew(third);
  await until(isServed(third));
  assert.equal(said.filter((text) => /get the renewed certificate/.test(text)).length, 1, said.join('\n'));
  stop.abort();
  await ended;
});
