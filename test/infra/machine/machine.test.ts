import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fitOf, needOf, usualTask } from '../../../infra/machine/fit.ts';
import { type Level, scarcest } from '../../../infra/machine/level.ts';
import { readLevels } from '../../../infra/machine/read-levels.ts';
import { capacityWarning, defaultCapacity, rolloutsThatFit } from '../../../infra/machine/rollouts-that-fit.ts';

const megabyte = 2 ** 20;

describe('the levels of a machine', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'levels-'));
    write('proc/meminfo', 'MemTotal:       8388608 kB\nMemFree:  10 kB\nMemAvailable:   4194304 kB\n');
    write('proc/loadavg', '0.10 0.20 0.30 2/300 4242\n');
    write('proc/sys/kernel/pid_max', '32768\n');
    write('proc/sys/kernel/threads-max', '60000\n');
    write(
      'proc/self/limits',
      'Limit  Soft Limit  Hard Limit  Units\nMax open files            1024      4096       files\n',
    );
    write('proc/sys/fs/file-nr', '2000\t0\t100000\n');
    for (const handle of [0, 1, 2]) write(`proc/self/fd/${handle}`, '');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const levels = (): readonly Level[] => readLevels({ root, directories: [root] });
  const free = (resource: Level['resource']) => {
    const { free: amount = Number.NaN, limit } = scarcest(levels(), resource, 'free') ?? {};
    return [amount, limit];
  };

  it("are the kernel's, where no control group is below them", () => {
    assert.deepEqual(free('memory'), [4096, "the machine's memory"]);
    assert.deepEqual(free('processes'), [32_468, 'kernel.pid_max']);
    assert.deepEqual(free('handles'), [1021, 'ulimit -n']);
    assert.ok(Number(free('disk')[0]) > 0);
  });

  it('include every control group above the process, without the files that it caches (version 2)', () => {
    write('proc/self/cgroup', '0::/outer/inner\n');
    write('sys/fs/cgroup/outer/memory.max', `${2048 * megabyte}\n`);
    write('sys/fs/cgroup/outer/memory.current', `${1548 * megabyte}\n`);
    write(
      'sys/fs/cgroup/outer/memory.stat',
      `anon 5\ninactive_file ${200 * megabyte}\nactive_file ${300 * megabyte}\n`,
    );
    write('sys/fs/cgroup/outer/inner/memory.max', 'max\n');
    write('sys/fs/cgroup/outer/inner/memory.current', '7\n');
    write('sys/fs/cgroup/outer/inner/pids.max', '500\n');
    write('sys/fs/cgroup/outer/inner/pids.current', '120\n');
    assert.deepEqual(free('memory'), [1000, 'memory.max of the control group /outer']);
    assert.deepEqual(free('processes'), [380, 'pids.max of the control group /outer/inner']);
  });

  it('include the control group that a container sees as the root (version 1)', () => {
    write('proc/self/cgroup', '4:memory:/docker/0123\n8:pids:/docker/0123\n1:cpu:/\n');
    write('sys/fs/cgroup/memory/memory.limit_in_bytes', `${1024 * megabyte}\n`);
    write('sys/fs/cgroup/memory/memory.usage_in_bytes', `${624 * megabyte}\n`);
    write('sys/fs/cgroup/memory/memory.stat', `total_inactive_file ${100 * megabyte}\ninactive_file 3\n`);
    write('sys/fs/cgroup/pids/pids.max', 'max\n');
    write('sys/fs/cgroup/pids/pids.current', '9\n');
    assert.deepEqual(free('memory'), [500, 'memory.limit_in_bytes of the control group /']);
    assert.deepEqual(free('processes'), [32_468, 'kernel.pid_max']);
  });

  it('say how many rollouts fit, and what limits them', () => {
    const whole = fitOf(levels(), needOf(usualTask, 'local'), 'total');
    assert.deepEqual([whole.rollouts, whole.limitedBy?.limit], [3, "the machine's memory"]);
    const now = fitOf(levels(), needOf(usualTask, 'local'), 'free');
    assert.deepEqual([now.rollouts, now.limitedBy?.limit], [1, "the machine's memory"]);
    const small = fitOf(levels(), needOf({ memoryMb: 64, diskMb: 1 }, 'local'), 'total');
    assert.deepEqual([small.rollouts, small.limitedBy?.limit], [24, 'ulimit -n']);
    const services = [{ memoryMb: 100 }, { memoryMb: 200 }];
    assert.equal(needOf({ memoryMb: 64, diskMb: 1, services }, 'docker').memory, 364);
    const elsewhere = fitOf(levels(), needOf(usualTask, 'kubernetes'), 'total');
    assert.deepEqual([elsewhere.rollouts, elsewhere.limitedBy?.limit], [24, 'ulimit -n']);
  });
});

describe('the capacity of a host', () => {
  const disks = { home: join(tmpdir(), 'no', 'such', 'home'), sandbox: 'local' } as const;

  it('is by default no more than fits on this machine, and one at least', () => {
    const { atMost } = rolloutsThatFit(disks);
    assert.ok(atMost.limitedBy !== null);
    assert.equal(defaultCapacity(disks), Math.max(1, Math.min(4, atMost.rollouts)));
  });

  it('is larger with remote sandboxes', () => {
    const elsewhere = { ...disks, sandbox: 'kubernetes' } as const;
    const { atMost, need } = rolloutsThatFit(elsewhere);
    assert.equal(defaultCapacity(elsewhere), Math.max(1, Math.min(64, atMost.rollouts)));
    assert.match(need, /for its remote sandbox/);
  });

  it('gets a warning above what fits, which says what limits it and what that costs', () => {
    const fit = rolloutsThatFit(disks);
    assert.equal(capacityWarning(fit.atMost.rollouts, fit), null);
    const warning = capacityWarning(fit.atMost.rollouts + 1, fit) ?? '';
    assert.match(warning, /only \d+ rollouts fit .* because of .* may run out of it/);
    assert.ok(warning.includes(fit.atMost.limitedBy?.limit ?? '?'));
  });
});
