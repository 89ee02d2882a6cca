import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Context } from '@temporalio/activity';
import { type NativeConnection, Worker } from '@temporalio/worker';
import { atBoundary, cancelRequested, joinAtBoundary } from '../../activities/boundary.ts';
import type { Effect } from '../../activities/effects.ts';
import { sendHeartbeatsNow } from '../../activities/heartbeats.ts';
import { connectWorker, type WorkerConnection } from '../../infra/temporal/connection.ts';
import { createHeartbeatThread, type HeartbeatThread } from '../../infra/temporal/heartbeat-thread.ts';
import { watchedBy } from '../../workers/watched-worker.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { type ActivityToRun, type ManualActivity, startActivity } from '../helpers/temporal/manual-activity.ts';
import '../helpers/temporal/quiet-runtime.ts';
import { startTestServer, type TestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

const taskQueue = 'boundary';
const heartbeatTimeoutMs = 5_000;
/** Longer than the heartbeat timeout, and shorter than the time after which the SDK gives an activity attempt up. */
const busyMs = heartbeatTimeoutMs + 3_000;
/** The SDK gives an activity attempt up 5 s after the heartbeat timeout. */
const givenUpMs = heartbeatTimeoutMs + 7_000;

/** Keeps the event loop busy, and a core. */
function compute(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Keeps the event loop busy, and leaves the core to the tests beside. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

describe('an activity at the boundary', () => {
  let server: TestServer;
  let connection: WorkerConnection;
  let thread: HeartbeatThread;
  let worker: Worker;
  let running: Promise<void>;
  let effect: Effect<unknown>;

  before(async () => {
    server = await startTestServer();
    connection = await connectWorker(server.target);
    thread = createHeartbeatThread(server.target);
    worker = await createWorker(connection.connection, { queue: taskQueue, watching: thread });
    running = worker.run();
  });
  after(async () => {
    worker.shutdown();
    await running;
    await thread.close();
    await connection.close();
    await server.close();
  });

  const createWorker = (
    to: NativeConnection,
    { queue, watching }: { readonly queue: string; readonly watching?: HeartbeatThread },
  ): Promise<Worker> => {
    const options = {
      connection: to,
      namespace: server.namespace,
      taskQueue: queue,
      maxHeartbeatThrottleInterval: '1s',
      activities: {
        alone: () => atBoundary((signal, report) => effect(signal, report)),
        joined: () => joinAtBoundary((signal, report) => effect(signal, report)),
      },
    } as const;
    return Worker.create(watching === undefined ? options : watchedBy(watching, options));
  };
  const start = (what: Effect<unknown>, options: Partial<ActivityToRun> = {}): Promise<ManualActivity> => {
    effect = what;
    return startActivity(server, { type: 'alone', taskQueue, heartbeatTimeoutMs, ...options });
  };
  const attempt = (): number => Context.current().info.attempt;

  describe('whose event loop is busy for longer than its heartbeat timeout', () => {
    it('completes in its first attempt', async () => {
      const activity = await start(async () => {
        compute(busyMs);
        return attempt();
      });
      assert.deepEqual(await activity.end(), { how: 'completed', attempt: 1, result: 1, earlier: null });
    });

    it('fails with its own failure, and is retried', async () => {
      const activity = await start(async () => {
        if (attempt() === 2) return 'again';
        block(busyMs);
        throw new TemperFailure('SandboxUnavailable', 'it does not answer');
      });
      const expected = { how: 'completed', attempt: 2, result: 'again', earlier: 'SandboxUnavailable' };
      assert.deepEqual(await activity.end(), expected);
    });

    it('keeps its details', async () => {
      const [go, blocked, done] = [gate(), gate(), gate()];
      const activity = await start(async (_signal, report) => {
        report({ step: 3 });
        await go.promise;
        block(busyMs);
        blocked.resolve();
        await done.promise;
      });
      const seen = async () => JSON.stringify(await activity.pending());
      const expected = JSON.stringify({ started: 1, details: { step: 3 }, retryMs: null });
      await until(async () => (await seen()) === expected);
      go.resolve();
      await blocked.promise;
      assert.equal(await seen(), expected);
      done.resolve();
      assert.equal((await activity.end()).how, 'completed');
    });

    it('learns of a cancel that came meanwhile', async () => {
      const go = gate();
      let requested: boolean | undefined;
      const activity = await start(async (signal) => {
        await go.promise;
        block(busyMs);
        await untilAborted(signal).catch((error: unknown) => {
          requested = cancelRequested(signal);
          throw error;
        });
      });
      await until(async () => (await activity.pending()).started === 1);
      await activity.cancel();
      go.resolve();
      assert.deepEqual(await activity.end(), { how: 'cancelled', attempt: 1, result: undefined, earlier: null });
      assert.equal(requested, true);
    });
  });

  it('learns of a cancel before its next heartbeat if its workflow asks for that', async () => {
    let run = '';
    const activity = await start(
      (signal) => {
        run = Context.current().info.workflowExecution?.runId ?? '';
        return untilAborted(signal);
      },
      { heartbeatTimeoutMs: 3_600_000 },
    );
    // The first heartbeat comes after a second, the next one after twenty minutes.
    await until(activity.beat);
    await activity.cancel();
    sendHeartbeatsNow(run);
    assert.equal((await activity.end()).how, 'cancelled');
  });

  it('is joined by its next attempt if its event loop was busy until the SDK gave it up', async () => {
    const done = gate();
    let begun = 0;
    const activity = await start(
      async () => {
        begun += 1;
        block(givenUpMs);
        await done.promise;
        return attempt();
      },
      { type: 'joined' },
    );
    await until(async () => (await activity.pending()).started === 2);
    done.resolve();
    const { how, result } = await activity.end();
    assert.deepEqual([how, result, begun], ['completed', 1, 1]);
  });

  describe('that the server has given up while its process lived', () => {
    /** A worker whose heartbeats depend on the event loop. */
    let unwatched: Worker;
    let ended: Promise<void>;
    before(async () => {
      unwatched = await createWorker(connection.connection, { queue: 'unwatched' });
      ended = unwatched.run();
    });
    after(async () => {
      unwatched.shutdown();
      await ended;
    });

    it('is joined by its next attempt, which has its details and its result', async () => {
      const done = gate();
      let begun = 0;
      const activity = await start(
        async (_signal, report) => {
          begun += 1;
          report({ step: 3 });
          block(busyMs);
          await done.promise;
          return attempt();
        },
        { type: 'joined', taskQueue: 'unwatched' },
      );
      await until(async () => {
        const { started, details } = await activity.pending();
        return started === 2 && JSON.stringify(details) === '{"step":3}';
      });
      done.resolve();
      const { earlier, ...end } = await activity.end();
      assert.deepEqual(end, { how: 'completed', attempt: 2, result: 1 });
      assert.match(String(earlier), /heartbeat timeout/i);
      assert.equal(begun, 1);
    });

    it('is ended by a cancel of the attempt that joined it', async () => {
      let begun = 0;
      let requested: boolean | undefined;
      const activity = await start(
        async (signal) => {
          begun += 1;
          block(busyMs);
          await untilAborted(signal).catch((error: unknown) => {
            requested = cancelRequested(signal);
            throw error;
          });
        },
        { type: 'joined', taskQueue: 'unwatched' },
      );
      await until(async () => (await activity.pending()).started === 2);
      await activity.cancel();
      assert.equal((await activity.end()).how, 'cancelled');
      assert.deepEqual([begun, requested], [1, true]);
    });

    it('is ended if no further attempt comes', async () => {
      const aborted = gate();
      const activity = await start(
        async (signal) => {
          block(busyMs);
          await untilAborted(signal).finally(aborted.resolve);
        },
        { type: 'joined', taskQueue: 'unwatched', retry: { initialMs: 100, maximumMs: 100, attempts: 1 } },
      );
      assert.equal((await activity.end()).how, 'timed out');
      await aborted.promise;
    });

    it('starts over if it is not to be joined', async () => {
      let begun = 0;
      const aborted = gate();
      const activity = await start(
        async (signal) => {
          begun += 1;
          if (attempt() === 2) return 'again';
          block(busyMs);
          return untilAborted(signal).finally(aborted.resolve);
        },
        { taskQueue: 'unwatched' },
      );
      const { how, attempt: last, result } = await activity.end();
      assert.deepEqual([how, last, result, begun], ['completed', 2, 'again', 2]);
      await aborted.promise;
    });
  });

  it('is retried after a random pause, within the bounds of its policy', async () => {
    const retry = { initialMs: 60_000, maximumMs: 600_000, attempts: 3 };
    const activities = await Promise.all(
      Array.from({ length: 12 }, () =>
        start(() => Promise.reject(new TemperFailure('SandboxUnavailable', 'it does not answer')), { retry }),
      ),
    );
    const pauses = await Promise.all(
      activities.map((activity) => until(async () => (await activity.pending()).retryMs)),
    );
    for (const pause of pauses) assert.ok(pause >= 30_000 && pause <= 90_000, `got ${pause}`);
    assert.ok(new Set(pauses).size > pauses.length / 2, `got ${pauses}`);
  });

  const gate = () => Promise.withResolvers<void>();
});
