import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { listenOnSocket } from '../../../../infra/gateway/http/listener.ts';

it('a socket that cannot accept connections for a while reports it each time, and stays', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-listener-'));
  const failed = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' });
  const reported: unknown[] = [];
  const onError = (error: unknown): void => void reported.push(error);
  const listen = t.mock.method(Server.prototype, 'listen');
  const listener = await listenOnSocket(join(directory, 'one.sock'), 'owner', { handler: () => {}, onError });
  try {
    const server = listen.mock.calls[0]?.this as Server;
    for (let times = 0; times < 2; times += 1) server.emit('error', failed);
    assert.deepEqual(reported, [failed, failed]);
    assert.equal(server.listening, true);
  } finally {
    await listener.close();
    await rm(directory, { recursive: true });
  }
});
