import assert from 'node:assert/strict';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { hostQueue } from '../../workflows/contracts/queues.ts';
import { cliOn } from '../helpers/cli.ts';
import { startS3Server } from '../helpers/store/s3-server.ts';
import { isPolledBy } from '../helpers/temporal/polled-by.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

/** Makes host workers, each on a home below one directory, that share a server and a bucket. The test's end kills them. */
async function openHosts(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'temper-host-'));
  const [server, s3] = await Promise.all([startTestServer(), startS3Server()]);
  const { bucket, prefix } = s3.place();
  const cli = (home: string, name: string) =>
    cliOn(join(root, home), server, {
      TEMPER_HOST: name,
      ...s3.env,
      TEMPER_STORE: `s3://${bucket}/${prefix}`,
      TEMPER_STORE_ENDPOINT: s3.url,
      TEMPER_HOST_LOST_AFTER: '15',
    });
  type Started = ReturnType<ReturnType<typeof cli>['start']>;
  const workers: Started[] = [];
  t.after(async () => {
    for (const { process } of workers) process.kill('SIGKILL');
    await Promise.all(workers.map(({ ended }) => ended));
    await Promise.all([server.close(), s3.close()]);
    await rm(root, { recursive: true, force: true });
  });
  const start = async (home: string, name: string): Promise<Started> => {
    const worker = cli(home, name).start('worker', 'host');
    workers.push(worker);
    const polls = until(() => isPolledBy(server.client, hostQueue(name), worker.process.pid));
    const ended = worker.ended.then(({ stdout, stderr }) => assert.fail(`the host ended: ${stdout}${stderr}`));
    await Promise.race([polls, ended]);
    ended.catch(() => undefined);
    return worker;
  };
  return { root, cli, start };
}

it('a home has one host worker: a second one is refused, and the one that follows a killed one starts at once', async (t) => {
  const { root, cli, start } = await openHosts(t);
  const first = await start('home', 'one');
  for (const name of ['one', 'two']) {
    const { code, stderr } = await cli('home', name).run('worker', 'host');
    assert.equal(code, 1);
    const holder = `a host worker already runs on ${join(root, 'home')}: process ${first.process.pid}; `;
    assert.match(stderr, new RegExp(`${holder}.*host ${name}`));
  }
  first.process.kill('SIGKILL');
  await first.ended;
  await start('home', 'two');
});

it('a copy of a home is refused while a host runs on the other one, and started in its place it keeps the name', async (t) => {
  const { root, cli, start } = await openHosts(t);
  const stop = async (worker: Awaited<ReturnType<typeof start>>): Promise<void> => {
    worker.process.kill('SIGTERM');
    await worker.ended;
  };
  const copy = (from: string, to: string) => cp(join(root, from), join(root, to), { recursive: true });
  const generation = async (): Promise<unknown> =>
    JSON.parse((await cli('home', 'one').run('host', 'list', '--json')).stdout)[0].generation;

  await stop(await start('home', 'one'));
  await copy('home', 'copy');
  const first = await start('home', 'one');
  const { code, stderr } = await cli('copy', 'one').run('worker', 'host');
  assert.equal(code, 1);
  assert.match(
    stderr,
    /host name used twice: one belongs to a machine with a copy of this home, .*another TEMPER_HOST/,
  );
  await stop(first);
  await copy('home', 'moved');
  await stop(await start('moved', 'one'));
  assert.equal(await generation(), 1);
});
