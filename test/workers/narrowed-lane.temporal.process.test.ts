import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { Context } from '@temporalio/activity';
import { Runtime, Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { createLanes } from '../../activities/host/lanes.ts';
import { createLaneRecords } from '../../infra/store/lane-records.ts';
import { connectWorker } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { laneRows, laneTable } from '../../workers/cli/stack/lanes.ts';
import { inLane } from '../../workers/lane-worker.ts';
import { reportLanes } from '../../workers/report-lanes.ts';
import { createRecords } from '../helpers/store/file-store.ts';
import { startActivity } from '../helpers/temporal/manual-activity.ts';
import { startTestServer } from '../helpers/temporal/temporal.ts';
import { until } from '../helpers/until.ts';

const host = 'narrowed';
const taskQueue = 'narrowed-lane';
/** The SDK ends an attempt some seconds after the server has given it up. */
const heartbeatTimeoutMs = 1_000;

it('a stage that runs out of time halves its lane, and metrics, `temper status` and the log say so', async (t) => {
  const port = await freePort();
  Runtime.install({
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    telemetryOptions: { metrics: { prometheus: { bindAddress: `127.0.0.1:${port}` } } },
  });
  const home = await mkdtemp(join(tmpdir(), 'temper-lane-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const server = await startTestServer();
  t.after(() => server.close());
  const { connection, close } = await connectWorker(server.target);
  t.after(close);
  const lanes = createLanes({ stages: 4, evaluations: 2 });
  const records = createLaneRecords(createRecords(home));
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => logged.push(line) });
  const reporting = new AbortController();
  t.after(() => reporting.abort());
  reportLanes(lanes, { host, records, log }, reporting.signal);

  let begun = 0;
  const worker = await Worker.create({
    connection,
    namespace: server.namespace,
    taskQueue,
    ...inLane(lanes.capture),
    activities: {
      async captureDiff() {
        begun += 1;
        // The first attempt that comes here is as silent as one on an overloaded host.
        if (begun === 1) await Context.current().cancelled;
      },
    },
  });
  const running = worker.run();
  try {
    const retry = { initialMs: 100, maximumMs: 100, attempts: 100 };
    const stage = await startActivity(server, { type: 'captureDiff', taskQueue, heartbeatTimeoutMs, retry });
    const { how, attempt } = await stage.end();
    // A machine that stands still for a second may lose the second one, too.
    assert.ok(how === 'completed' && attempt >= 2, `${how} in attempt ${attempt}`);
    await until(() => lanes.capture.width.now === 2);

    const served = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    await until(async () => /^temper_lane_width\{[^}]*lane="capture"[^}]*\} 2$/m.test(await served()));
    assert.match(await served(), /^temper_lane_width\{[^}]*lane="release"[^}]*\} 4$/m);
    const shown = async (): Promise<string> => laneTable(await laneRows(server.client, host, await records.find(host)));
    await until(async () => /^capture +0 +2 of 4 +0$/m.test(await shown()));
    const warning = 'lane capture takes 2 stages at once instead of 4: stages were slow or ran out of time';
    assert.deepEqual(
      logged.map((line) => JSON.parse(line)).map(({ level, msg }) => [level, msg]),
      [[40, warning]],
    );
  } finally {
    worker.shutdown();
    await running;
  }
});
