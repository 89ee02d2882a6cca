import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { leaseAccounts } from '../../../../infra/sandbox/local/accounts.ts';
import { detachDirectory, findDirectory } from '../../../../infra/sandbox/local/directories.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { until } from '../../../helpers/until.ts';

const stack = `leftovers-${process.pid}`;
const longAgoMs = 61_000;

/** Creates a root for local sandboxes, and leaves a sandbox as a worker does that is killed while it removes one. */
function startRoot(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'local-leftovers-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const provider = createLocalProvider({ root, stack });
  const make = (name: string) => {
    const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent' as const, expiresAtMs: Date.now() };
    const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64, workdir: '/workspace', mounts: [] };
    return provider.ensure({ name, image: 'none', labels, ...limits }, t.signal);
  };
  const leave = (name: string): string => {
    const directory = join(root, stack, `.gone-${name}`);
    renameSync(join(root, stack, name), directory);
    return directory;
  };
  /** Moves the clock, since the change time that gives a directory's age can't be set. */
  const later = () => t.mock.timers.enable({ apis: ['Date'], now: Date.now() + longAgoMs });
  const home = join(root, stack);
  return { home, provider, make, leave, later };
}

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

it('clearing leftovers, unlike listing sandboxes, ends what an interrupted removal left running', async (t) => {
  const { provider, make, leave, later } = startRoot(t);
  const sandbox = await make('left');
  await sandbox.start({ key: 'long', argv: ['sleep', '600'], env: {}, account: 'agent' }, t.signal);
  const directory = leave('left');
  const supervisor = Number(readFileSync(join(directory, 'ctl', 'long', 'pid'), 'utf8').split(' ')[0]);
  await provider.clearLeftovers();
  assert.ok(isAlive(supervisor), 'expected a removal that has just begun to be left to its own process');
  later();

  assert.deepEqual(await provider.list(stack), []);
  assert.ok(existsSync(directory) && isAlive(supervisor));

  await provider.clearLeftovers();
  assert.ok(!existsSync(directory));
  t.mock.timers.reset();
  await until(() => !isAlive(supervisor));
});

it('a leftover that can not be removed blocks neither other leftovers nor the list of sandboxes', async (t) => {
  const { provider, make, leave, later } = startRoot(t);
  for (const name of ['a-stuck', 'b-left', 'live']) await make(name);
  const [stuck, left] = [leave('a-stuck'), leave('b-left')];
  rmSync(join(stuck, 'run'), { recursive: true });
  writeFileSync(join(stuck, 'run'), 'no directory');
  later();

  await assert.rejects(provider.clearLeftovers(), /to finish every removal.*1 failures.*a-stuck/);
  assert.deepEqual([existsSync(stuck), existsSync(left)], [true, false]);
  assert.deepEqual(
    (await provider.list(stack)).map(({ name }) => name),
    ['live'],
  );
  rmSync(join(stuck, 'run'));
  await provider.clearLeftovers();
  assert.ok(!existsSync(stuck));
  await provider.remove('live');
});

it('a partly erased sandbox is erased completely', async (t) => {
  const { provider, make, leave, later } = startRoot(t);
  await make('half');
  const directory = leave('half');
  for (const part of ['run', 'ctl', 'fs']) rmSync(join(directory, part), { recursive: true });
  later();
  await provider.clearLeftovers();
  assert.ok(!existsSync(directory));
});

const isRoot = process.getuid?.() === 0;
it('a sandbox shares no uid with one that is still being erased', { skip: isRoot ? false : 'no uids' }, async (t) => {
  const { home, provider, make, later } = startRoot(t);
  const slotOf = (name: string) => findDirectory(join(home, name))?.accounts.slot;
  await make('twice');
  const old = detachDirectory(home, 'twice');
  assert.ok(old?.accounts.slot !== undefined);
  later();
  await make('twice');
  const slot = slotOf('twice');
  assert.notEqual(slot, old.accounts.slot);

  await provider.clearLeftovers();
  assert.ok(!existsSync(old.path));
  assert.deepEqual([old.accounts.slot, slot].map(isLeased), [false, true]);
  await provider.remove('twice');
  assert.equal(isLeased(slot), false);
});

it('two host workers never take the same leftover uids', { skip: isRoot ? false : 'no uids' }, async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'local-leases-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const directories = Array.from({ length: 500 }, (_, index) => join(root, `gone-${index}`));
  const taken = new Set<number>();
  t.after(() => {
    for (const slot of taken) rmSync(join('/run/temper/uids', String(slot)), { force: true });
  });
  const note = (slot: number | undefined): number => {
    assert.ok(slot !== undefined);
    taken.add(slot);
    return slot;
  };
  // Leases of sandboxes that never came to be.
  for (const directory of directories) {
    const slot = note(leaseAccounts(directory).slot);
    utimesSync(join('/run/temper/uids', String(slot)), 1, 1);
  }
  const atMs = Date.now() + 3_000;
  const fixture = fileURLToPath(new URL('lease.fixture.ts', import.meta.url));
  const workers = [1, 2].map(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [fixture, String(atMs), ...directories]);
    const slots: readonly number[] = JSON.parse(stdout);
    return slots.map(note);
  });
  const [mine = [], others = []] = await Promise.all(workers);
  assert.equal(mine.length, directories.length);
  assert.deepEqual(
    mine.filter((slot, index) => slot === others[index]),
    [],
  );
});

const isLeased = (slot: number | undefined): boolean => existsSync(join('/run/temper/uids', String(slot)));
