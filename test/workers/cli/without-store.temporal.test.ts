import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { startRun } from '../../../workers/cli/follow/start-workflow.ts';
import { cliOn } from '../../helpers/cli.ts';
import { startTestServer } from '../../helpers/temporal/temporal.ts';
import { until } from '../../helpers/until.ts';

it('cancels a run while the store is away, and says that it could not compare it with the server', async () => {
  await using stack = new AsyncDisposableStack();
  const server = await startTestServer();
  stack.defer(server.close);
  const home = await mkdtemp(join(tmpdir(), 'temper-without-'));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const run = await startRun(server.client, 'my-run', { tasks: 'generated:train/1' });
  const away = {
    TEMPER_STORE: 's3://bucket/one',
    TEMPER_STORE_ENDPOINT: 'http://127.0.0.1:1',
    AWS_ACCESS_KEY_ID: 'a',
    AWS_SECRET_ACCESS_KEY: 'b',
  };
  const { ended, process } = cliOn(home, server, away).start('cancel', 'my-run');
  const cancelled = async (): Promise<boolean> => {
    const { events } = await run.fetchHistory();
    return events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes) === true;
  };
  // No worker runs here, so the command would wait for the end of the run for ever.
  await until(async () => process.exitCode !== null || (await cancelled()));
  process.kill('SIGKILL');
  assert.equal(await cancelled(), true);
  assert.match((await ended).stderr, /cannot compare the Temporal server with the store: cannot read stack\.json/);
});
