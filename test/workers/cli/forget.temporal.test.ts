import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createDirectory } from '../../../infra/store/directory.ts';
import { createHosts, type Hosts } from '../../../infra/store/hosts.ts';
import { ensureSchedule } from '../../../workers/schedules.ts';
import { reaperId } from '../../../workflows/contracts/ids.ts';
import { cliOn } from '../../helpers/cli.ts';
import { hostFacts, hostOn } from '../../helpers/hosts.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal/temporal.ts';
import { until } from '../../helpers/until.ts';

const leaseMs = 1_500;

describe('the command that forgets a host', () => {
  let server: TestServer;
  let home: string;
  let hosts: Hosts;
  before(async () => {
    server = await startTestServer();
    home = await mkdtemp(join(tmpdir(), 'temper-forget-'));
    hosts = createHosts(createDirectory(home));
  });
  after(async () => {
    await server?.close();
    await rm(home, { recursive: true, force: true });
  });

  const hasReaper = async (): Promise<boolean> => {
    for await (const { scheduleId } of server.client.schedule.list()) if (scheduleId === reaperId('one')) return true;
    return false;
  };
  const forget = () => cliOn(home, server).run('host', 'forget', 'one', '--yes', '--json');

  it('refuses one that renews its record while it is watched, and takes one that does not', async () => {
    const { lease, claim } = await hostOn(home, hosts, 'a', { leaseMs });
    await claim();
    await ensureSchedule(server.client, {
      scheduleId: reaperId('one'),
      everyMs: 3_600_000,
      workflowType: 'reaper',
      args: [{ host: 'one' }],
      summary: 'looks after host one',
    });
    await until(hasReaper);
    const renewing = setInterval(() => void lease.renew(0, hostFacts).catch(() => undefined), leaseMs / 30);
    const alive = await forget().finally(() => clearInterval(renewing));
    assert.equal(alive.code, 1);
    assert.match(alive.stderr, /one is alive: it renewed its record at .*; stop its processes first/);
    assert.equal((await hosts.find('one'))?.record.lost, null);

    const { code, stdout, stderr } = await forget();
    assert.equal(code, 0, stderr);
    const { lost, rollouts } = JSON.parse(stdout);
    assert.match(lost.reason, /^forgotten by /);
    assert.equal(rollouts, 0);
    assert.notEqual(lease.now().state, 'valid');
    // The server's list follows a moment later.
    await until(async () => !(await hasReaper()));
  });

  it('changes a schedule that another release has created, and leaves it paused', async () => {
    const schedule = { scheduleId: 'temper-test', workflowType: 'reaper', args: [{ host: 'one' }], summary: 'a test' };
    const handle = server.client.schedule.getHandle(schedule.scheduleId);
    await ensureSchedule(server.client, { ...schedule, everyMs: 3_600_000 });
    await handle.pause('by hand');
    const updates = async (): Promise<number> => (await handle.describe()).info.lastUpdatedAt?.getTime() ?? 0;
    const before = await updates();
    await ensureSchedule(server.client, { ...schedule, everyMs: 3_600_000 });
    assert.equal(await updates(), before);
    await ensureSchedule(server.client, { ...schedule, args: [{ host: 'two' }], everyMs: 7_200_000 });
    const { spec, policies, action, state } = await handle.describe();
    assert.deepEqual(
      spec.intervals?.map(({ every }) => every),
      [7_200_000],
    );
    assert.deepEqual([policies.catchupWindow, action.args, state.paused], [7_200_000, [{ host: 'two' }], true]);
    await handle.delete();
  });

  it('asks for --yes where there is no terminal', async () => {
    const { claim } = await hostOn(home, hosts, 'a', { leaseMs });
    await claim();
    const asked = await cliOn(home, server).run('host', 'forget', 'one');
    assert.equal(asked.code, 2);
    assert.match(asked.stderr, /expected --yes, since there is no terminal to ask for confirmation/);
  });
});
