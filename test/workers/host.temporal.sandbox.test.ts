import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { eraseDirectory, findDirectory } from '../../infra/sandbox/local/directories.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { readConfig } from '../../infra/settings/config.ts';
import { openStackId } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { cliOn } from '../helpers/cli.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

it('the host worker starts although a sandbox cannot be removed, logs the failure, and leaves it to the reaper; status lists its lanes, and an operator can drain it', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'temper-host-'));
  const server = await startTestServer();
  const config = readConfig({ TEMPER_HOME: home });
  const stack = await openStackId(config.paths, createDirectory(home));
  const places = join(config.paths.sandboxes, stack);
  t.after(async () => {
    await server.close();
    for (const name of await readdir(places)) {
      const place = findDirectory(join(places, name));
      if (place !== undefined) await eraseDirectory(place);
    }
    await rm(home, { recursive: true, force: true });
  });
  // What is of an earlier life of the host is removed at its start, without a second look.
  const fence = `${hostname()}/0`;
  const labels = { stack, run: 'run', rollout: 'over', epoch: 1, purpose: 'agent' as const, expiresAtMs: 1, fence };
  const limits = { cpus: 1, memoryMb: 64, diskMb: 64, pids: 64, workdir: '/workspace', mounts: [] };
  const provider = createLocalProvider({ root: config.paths.sandboxes, stack });
  await provider.ensure({ name: 'resists', image: 'none', labels, ...limits }, t.signal);
  await rm(join(places, 'resists', 'run'), { recursive: true });
  await writeFile(join(places, 'resists', 'run'), 'no directory');

  const worker = cliOn(home, server).start('worker', 'host');
  const ended = worker.ended.then(({ code, stdout, stderr }) => {
    throw new Error(`the worker ended with exit code ${code}: ${stdout}${stderr}`);
  });
  const { schedule } = server.client;
  const scheduled = until(async () => {
    const found = await schedule
      .getHandle(`temper-reaper-${hostname()}`)
      .describe()
      .catch(() => null);
    return found !== null;
  });
  const listed = scheduled.then(() =>
    until(async () => {
      const { stdout } = await cliOn(home, server).run('status', '--json');
      const { lanes } = JSON.parse(stdout) as {
        readonly lanes: readonly { readonly lane: string; readonly queued: number }[];
      };
      return lanes.length > 0 && lanes;
    }),
  );
  const ordered = listed.then(async (lanes) => ({ lanes, orders: await orderHost(cliOn(home, server)) }));
  const { lanes, orders } = await Promise.race([ordered, ended]).finally(() => worker.process.kill());
  assert.deepEqual(orders, {
    listed: [[hostname(), 'working']],
    drained: ['new disks', 'draining'],
    resumed: null,
    forgotten: 1,
    unknown: 2,
  });
  assert.deepEqual(
    lanes.map(({ lane, queued }) => `${lane} ${queued}`),
    ['image 0', 'provision 0', 'capture 0', 'release 0', 'evaluate 0'],
  );
  ended.catch(() => undefined);
  const { stdout } = await worker.ended;
  assert.match(stdout, /"level":40.*ENOTDIR.*the reaper retries every minute/);
});

/** Gives the orders of an operator to the only host. */
async function orderHost({ run }: ReturnType<typeof cliOn>) {
  const host = hostname();
  const order = async (...args: readonly string[]) => JSON.parse((await run('host', ...args, '--json')).stdout);
  const rows = async (): Promise<readonly Record<'name' | 'state', unknown>[]> => order('list');
  const listed = (await rows()).map(({ name, state }) => [name, state]);
  const { draining } = await order('drain', host, '--reason', 'new disks');
  const drained = [draining.reason, (await rows())[0]?.state];
  const resumed = (await order('resume', host)).draining;
  const alive = await run('host', 'forget', host, '--yes');
  assert.match(alive.stderr, /is alive: its worker asks the Temporal server for work; .*temper host drain/);
  const unknown = await run('host', 'drain', 'no-such-host');
  return { listed, drained, resumed, forgotten: alive.code, unknown: unknown.code };
}
