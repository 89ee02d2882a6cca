import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { WebSocket as WebSocketClient } from 'ws';
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

  it('serves TLS, with the token in the address', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'temper-openenv-'));
    t.after(() => rm(directory, { recursive: true }));
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
    const kind = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=temper.test';
    const name = ['-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync('openssl', ['req', ...kind.split(' '), ...name, '-keyout', key, '-out', cert], { stdio: 'pipe' });
    const tls = { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
    const keys = { client: 'the-token', model: 'the-key' };
    const { server } = await startSetting(t, { keys, tls, calls: false });
    const socket = new WebSocketClient(`${server.url.replace('https://', 'wss://client:the-token@')}/ws`, {
      ca: tls.cert,
    });
    await once(socket, 'open');
    socket.send('{"type":"state"}');
    const [reply] = await once(socket, 'message');
    assert.equal(JSON.parse(String(reply)).type, 'state');
    socket.close();
  });
});
