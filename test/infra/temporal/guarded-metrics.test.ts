import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, Server } from 'node:net';
import { describe, it } from 'node:test';
import { Agent, request } from 'undici';
import { serveGuardedMetrics } from '../../../infra/temporal/guarded-metrics.ts';
import { certificateAt, createCertificate, fingerprintOf } from '../../helpers/certificate.ts';

const listen = '127.0.0.1';
const token = 'token-of-prometheus';

describe('guarded metrics', () => {
  it('are served by TLS alone, to those with the token', async (t) => {
    const exporter = createServer((asked, reply) =>
      reply.end(asked.url === '/metrics' ? 'temper_rollouts_total 3\n' : ''),
    );
    await once(exporter.listen(0, listen), 'listening');
    t.after(() => exporter.close());
    const tls = await createCertificate(listen);
    const from = `http://${listen}:${(exporter.address() as AddressInfo).port}`;
    const { url, close } = await serveGuardedMetrics({ from, listen, port: 0, tls, token });
    t.after(close);
    const dispatcher = new Agent({ connect: { ca: tls.cert } });
    t.after(() => dispatcher.close());
    const ask = async (authorization?: string, at = url) => {
      const { statusCode, body } = await request(at, { dispatcher, headers: { authorization } });
      return [statusCode, await body.text()];
    };

    assert.deepEqual(await ask(`Bearer ${token}`), [200, 'temper_rollouts_total 3\n']);
    assert.deepEqual(await ask(), [401, 'expected TEMPER_METRICS_TOKEN as a bearer token, got none\n']);
    assert.equal((await ask('Bearer another-token-of-some'))[0], 401);
    assert.equal((await ask(`Bearer ${token}`, url.replace('metrics', 'other')))[0], 404);
    await assert.rejects(request(url.replace('https', 'http')), 'expected no answer without TLS');

    exporter.closeAllConnections();
    exporter.close();
    await once(exporter, 'close');
    assert.equal((await ask(`Bearer ${token}`))[0], 502);
  });

  it('are served with a renewed certificate to new connections', async (t) => {
    const [first, second] = [await createCertificate(listen), await createCertificate(listen)];
    const { url, serveTls, close } = await serveGuardedMetrics({ from: '', listen, port: 0, tls: first, token });
    t.after(close);
    assert.equal(await certificateAt(url), fingerprintOf(first.cert));
    serveTls(second);
    assert.equal(await certificateAt(url), fingerprintOf(second.cert));
    assert.throws(() => serveTls({ ...first, key: second.key }));
    assert.equal(await certificateAt(url), fingerprintOf(second.cert));
  });

  it('do not end the process if connections cannot be accepted for a while', async (t) => {
    const tls = await createCertificate(listen);
    const listened = t.mock.method(Server.prototype, 'listen');
    const warned = t.mock.method(process, 'emitWarning', () => undefined);
    const { close } = await serveGuardedMetrics({ from: '', listen, port: 0, tls, token });
    t.after(close);
    const server = listened.mock.calls[0]?.this as Server;
    for (let times = 0; times < 2; times += 1) server.emit('error', new Error('accept EMFILE'));
    assert.deepEqual(
      warned.mock.calls.map((call) => call.arguments[0]),
      ['Error: accept EMFILE', 'Error: accept EMFILE'],
    );
  });

  it('say which address they cannot have', async () => {
    const tls = await createCertificate(listen);
    const options = { from: '', listen: '192.0.2.1', port: 9464, tls, token };
    await assert.rejects(
      serveGuardedMetrics(options),
      /metrics: expected to listen on 192\.0\.2\.1:9464, got .*EADDRNOTAVAIL/,
    );
  });
});
