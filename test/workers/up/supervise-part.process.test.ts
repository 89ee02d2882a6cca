import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { it } from 'node:test';
import type { Part, PartStatus } from '../../../workers/up/part.ts';
import { supervisePart } from '../../../workers/up/supervise-part.ts';

const quick = { firstMs: 10, capMs: 40, steadyMs: 60_000 };

it('a killed part restarts under a new pid, and the restart is counted', async () => {
  const watch = watcher();
  const supervised = await supervisePart(sleeper(), watch.look, noSignal(), quick);
  const first = await watch.until((status) => status.state === 'running');
  process.kill(pidOf(first), 'SIGKILL');
  const second = await watch.until((status) => status.state === 'running' && status.pid !== first.pid);
  assert.equal(second.restarts, 1);
  assert.equal(second.lastExit, 'signal SIGKILL');
  await supervised.stop();
  assert.equal(supervised.status().state, 'stopped');
  assert.throws(() => process.kill(pidOf(second), 0), /ESRCH/);
});

it('a part that ends at once waits longer before each restart, up to a cap', async () => {
  const starts: number[] = [];
  const watch = watcher();
  const part: Part = {
    ...sleeper(),
    async start() {
      starts.push(performance.now());
      return { pid: 1, exited: Promise.resolve('exit code 1'), stop: async () => undefined };
    },
  };
  const supervised = await supervisePart(part, watch.look, noSignal(), quick);
  await watch.until((status) => status.restarts === 5 && status.state === 'running');
  await supervised.stop();
  const gaps = starts.slice(1).map((at, index) => at - (starts[index] ?? 0));
  for (const [index, atLeastMs] of [10, 20, 40, 40, 40].entries()) {
    assert.ok(
      (gaps[index] ?? 0) >= atLeastMs - 2,
      `gap ${index}: expected ${atLeastMs} ms or more, got ${gaps[index]}`,
    );
  }
});

it('a part that ends again and again leaves no listeners behind', async () => {
  const watch = watcher();
  const signals: AbortSignal[] = [];
  const part: Part = {
    ...sleeper(),
    async start(signal) {
      signals.push(signal);
      return { pid: 1, exited: Promise.resolve('exit code 1'), stop: async () => undefined };
    },
  };
  const supervised = await supervisePart(part, watch.look, noSignal(), { firstMs: 1, capMs: 1, steadyMs: 60_000 });
  await watch.until((status) => status.restarts === 20 && status.state === 'running');
  const stopping = signals.at(-1);
  assert.ok(stopping !== undefined);
  assert.ok(getEventListeners(stopping, 'abort').length <= 2);
  await supervised.stop();
});

it('a restart that fails is retried', async () => {
  let starts = 0;
  const watch = watcher();
  const real = sleeper();
  const part: Part = {
    ...real,
    async start(signal) {
      starts += 1;
      if (starts === 2) throw new Error('not this time');
      return real.start(signal);
    },
  };
  const supervised = await supervisePart(part, watch.look, noSignal(), quick);
  process.kill(pidOf(await watch.until((status) => status.state === 'running')), 'SIGKILL');
  const again = await watch.until((status) => status.state === 'running' && status.restarts === 2);
  assert.equal(again.lastExit, 'not this time');
  await supervised.stop();
});

it('a first start that fails is not retried', async () => {
  const part: Part = { ...sleeper(), start: () => Promise.reject(new Error('wrong setting')) };
  await assert.rejects(
    supervisePart(part, () => undefined, noSignal(), quick),
    /wrong setting/,
  );
});

const noSignal = (): AbortSignal => new AbortController().signal;

/** Makes a part whose process does nothing until it is stopped. */
function sleeper(): Part {
  return {
    name: 'control',
    logFile: '/dev/null',
    async start() {
      const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'ignore' });
      const exited = once(child, 'exit').then(([code, signal]) =>
        signal === null ? `exit code ${code}` : `signal ${signal}`,
      );
      await once(child, 'spawn');
      return {
        pid: child.pid ?? 0,
        exited,
        async stop() {
          child.kill('SIGKILL');
          await exited;
        },
      };
    },
  };
}

function watcher() {
  let waiting: {
    readonly wanted: (status: PartStatus) => boolean;
    readonly found: (status: PartStatus) => void;
  } | null = null;
  let last: PartStatus | undefined;
  return {
    look(status: PartStatus): void {
      last = status;
      if (waiting?.wanted(status)) waiting.found(status);
    },
    until: (wanted: (status: PartStatus) => boolean): Promise<PartStatus> =>
      new Promise((found) => {
        waiting = { wanted, found };
        if (last !== undefined && wanted(last)) found(last);
      }),
  };
}

function pidOf({ pid }: PartStatus): number {
  if (pid === null) throw new Error('expected a pid');
  return pid;
}
