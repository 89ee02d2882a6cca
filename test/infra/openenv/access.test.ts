import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { describe, it } from 'node:test';
import { WebSocket as WebSocketClient } from 'ws';
import { certificateAt, createCertificate, fingerprintOf } from '../../helpers/certificate.ts';
import { until } from '../../helpers/until.ts';
import { connect, startSetting } from './setting.ts';

describe('the OpenEnv server', () => {
  it('lets in only those with the token of the clients, and gateways with their key', async (t) => {
    const setting = await startSetting(t, { keys: { client: 'the-token', model: 'the-key' }, calls: false });
    const { url } = setting.server;
    const statusOf = async (path: string, authorization?: string) =>
      (await fetch(`${url}${path}`, authorization === undefined ? {} : { headers: { authorization } })).status;
    assert.equal(await statusOf('/health'), 200);
    for (const path of ['/schema', '/metadata', '/openapi.json', '/ws']) assert.equal(await statusOf(path), 401, path);
    assert.equal(await statusOf('/schema', 'Bearer the-token'), 200);
    assert.equal(await statusOf('/schema', `Basic ${btoa('client:the-token')}`), 200);
    assert.equal(await statusOf('/schema', 'Bearer the-key'), 401);
    const { ask } = setting;
    assert.equal((await ask({ key: 'k' })).status, 401);
    assert.equal((await ask({ key: 'k', headers: { authorization: 'Bearer the-token' } })).status, 401);
    assert.equal((await ask({ key: 'k', headers: { authorization: 'Bearer the-key' } })).status, 503);
    const refused = connect(setting);
    await until(refused.isClosed);
  });

  it('refuses pages of other servers in a browser of the same machine', async (t) => {
    const { server } = await startSetting(t, { calls: false });
    const { host, port } = new URL(server.url);
    const answerTo = async (path: string, headers: Readonly<Record<string, string>>) => {
      const asked = request(`${server.url}${path}`, { headers });
      asked.end();
      const [reply] = await Promise.race([once(asked, 'response'), once(asked, 'upgrade')]);
      reply.destroy();
      return reply.statusCode;
    };
    const upgrade = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    };
    const cases: readonly (readonly [number, Readonly<Record<string, string>>])[] = [
      [200, {}],
      [200, { host: `localhost:${port}` }],
      [200, { host: `[::1]:${port}` }],
      [200, { origin: server.url }],
      [403, { origin: 'https://evil.test' }],
      [403, { origin: `http://evil.test:${port}` }],
      [403, { origin: `http://localhost:${Number(port) + 1}`, host: `localhost:${port}` }],
      [403, { origin: 'null' }],
      // The name leads to this machine since the page was loaded.
      [403, { host: `evil.test:${port}` }],
      [403, { host: `127.0.0.1.evil.test:${port}` }],
      [403, { host: `evil.test:${port}`, origin: `http://evil.test:${port}` }],
    ];
    for (const [status, headers] of cases) {
      const shown = `${JSON.stringify(headers)} at ${host}`;
      assert.equal(await answerTo('/schema', headers), status, shown);
      const socketStatus = await answerTo('/ws', { ...upgrade, ...headers });
      assert.equal(socketStatus, status === 200 ? 101 : status, shown);
    }
  });

  it('takes any name of its machine from those who have the token, but no other page', async (t) => {
    const { server } = await startSetting(t, { keys: { client: 'the-token', model: null }, calls: false });
    const statusOf = async (path: string, headers: Readonly<Record<string, string>>) => {
      const asked = request(`${server.url}${path}`, { headers });
      asked.end();
      const [reply] = await once(asked, 'response');
      reply.destroy();
      return reply.statusCode;
    };
    const authorization = 'Bearer the-token';
    assert.equal(await statusOf('/schema', { host: 'gpu-1', authorization }), 200);
    assert.equal(await statusOf('/schema', { host: 'gpu-1', authorization, origin: 'https://evil.test' }), 403);
    // The path of the gateways has no key here.
    assert.equal(await statusOf('/model/v1/chat/completions', { host: 'gpu-1', authorization }), 403);
  });

  it('serves TLS, with the token in the address', async (t) => {
    const tls = await createCertificate('127.0.0.1');
    const keys = { client: 'the-token', model: 'the-key' };
    const { server } = await startSetting(t, { keys, tls, calls: false });
    const socket = new WebSocketClient(`${server.url.replace('https://', 'wss://client:the-token@')}/ws`, {
      ca: tls.cert,
    });
    await once(socket, 'open');
    socket.send('{"type":"state"}');
    const [reply] = await once(socket, 'message');
    assert.equal(JSON.parse(String(reply)).type, 'state');
    const renewed = await createCertificate('127.0.0.1');
    server.serveTls(renewed);
    assert.equal(await certificateAt(server.url), fingerprintOf(renewed.cert));
    socket.close();
  });
});
