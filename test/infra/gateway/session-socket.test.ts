import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { limits } from '../../../infra/gateway/limits.ts';
import { listenForSession } from '../../../infra/gateway/session-socket.ts';
import { until } from '../../helpers/until.ts';

async function startDirectory(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'temper-session-socket-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'egress');
  /** Listens as one activity attempt, which answers whatever it is asked with its name. */
  const listen = (name: string) =>
    listenForSession({
      path,
      onConnection: (socket) => void socket.once('data', () => socket.end(name)).on('error', () => undefined),
      onError: () => undefined,
    });
  async function ask(): Promise<string> {
    const socket = connect(path);
    socket.write('who?');
    return text(socket);
  }
  return { directory, path, listen, ask };
}

it('a session keeps its socket when an earlier server of the same path closes', async (t) => {
  const { listen, ask } = await startDirectory(t);
  const first = await listen('first');
  const second = await listen('second');
  t.after(() => second.close());
  first.close();
  first.close();
  assert.equal(await ask(), 'second');
});

it('a session keeps its socket when an earlier server of the same path would open its own again', async (t) => {
  const { path, listen, ask } = await startDirectory(t);
  const first = await listen('first');
  t.after(() => first.close());
  // Beyond its limits the first server closes its socket for a moment.
  const idle = Array.from({ length: limits.sessionConnections + 1 }, () => connect(path).on('error', () => undefined));
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  await until(() => !existsSync(path));
  const second = await listen('second');
  t.after(() => second.close());
  // The first server would be back by then.
  await delay(2 * limits.sessionRestMs);
  assert.equal(await ask(), 'second');
});

it('a session replaces what a killed process has left, and leaves nothing when it closes', async (t) => {
  const { directory, path, listen, ask } = await startDirectory(t);
  await writeFile(path, '');
  const socket = await listen('only');
  assert.equal(await ask(), 'only');
  assert.deepEqual(await readdir(directory), ['egress']);
  socket.close();
  assert.deepEqual(await readdir(directory), []);
  const [error] = await once(connect(path), 'error');
  assert.equal(error.code, 'ENOENT');
});
