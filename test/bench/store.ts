/**
 * Measures what a rollout asks of an object store: the requests and their time, while a stack on a real S3 server runs
 * rollouts of `mini` with the embedded policy, and what the stack asks while nothing runs.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { Command } from 'commander';
import { type Config, readConfigWith } from '../../infra/settings/config.ts';
import { connectClient } from '../../infra/temporal/connection.ts';
import { freePort } from '../../infra/temporal/ports.ts';
import { temporalTarget } from '../../infra/temporal/temporal-target.ts';
import { onInterrupt } from '../../workers/cli/follow/interrupt.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { note, print } from '../../workers/cli/text/output.ts';
import { startStack } from '../../workers/up/start-stack.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type CountingProxy, type StoreRequest, startCountingProxy } from '../helpers/store/counting-proxy.ts';
import { startS3Server } from '../helpers/store/s3-server.ts';
import { each } from './measure.ts';

const startTimeoutMs = 300_000;

interface Options {
  readonly rollouts: number;
  readonly concurrency: number;
  readonly idle: number;
}

await new Command('npm run bench:store --')
  .description('Measures the requests of a rollout to an object store, and their time.')
  .option('--rollouts <n>', 'number of rollouts to measure', wholeNumber(1, 10_000), 40)
  .option('--concurrency <n>', 'rollouts that run at once', wholeNumber(1, 500), 4)
  .option('--idle <seconds>', 'time for which the stack is measured while nothing runs', wholeNumber(1, 3600), 40)
  .action(main)
  .parseAsync();

async function main(options: Options): Promise<void> {
  const interrupt = onInterrupt('stopping the stack and the S3 server');
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-store-'));
  const server = await startS3Server();
  const proxy = await startCountingProxy(server.url);
  try {
    const { bucket, prefix } = server.place();
    const config = readConfigWith({
      ...server.env,
      TEMPER_HOME: home,
      TEMPER_STORE: `s3://${bucket}/${prefix}`,
      TEMPER_STORE_ENDPOINT: proxy.url,
      TEMPER_SANDBOX: 'local',
      TEMPER_CAPACITY: String(options.concurrency),
      TEMPER_TEMPORAL_PORT: String(await freePort()),
      TEMPER_UI_PORT: String(await freePort()),
      TEMPER_POLICY_PORT: String(await freePort()),
    });
    await measure(config, proxy, options, interrupt.signal);
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    process.exitCode = 130;
  } finally {
    interrupt.release();
    await proxy.close();
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
}

async function measure(config: Config, { requests }: CountingProxy, options: Options, signal: AbortSignal) {
  const { rollouts, concurrency, idle } = options;
  note('starting a stack');
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]);
  const parts = ['temporal', 'policy', 'gateway', 'control', 'host'] as const;
  const stack = await startStack({ config, parts }, timeout);
  const { client, close } = await connectClient(temporalTarget(config));
  try {
    await each(concurrency, concurrency, () => oneRollout(client));
    note(`measuring ${idle} s in which nothing runs`);
    const beforeIdle = requests.length;
    await sleep(idle * 1000, undefined, { signal });
    const beforeWork = requests.length;
    let ended = 0;
    note(`measuring ${rollouts} rollouts`);
    await each(rollouts, concurrency, async () => {
      signal.throwIfAborted();
      await oneRollout(client);
      ended += 1;
      if (ended % 10 === 0) note(`${ended} of ${rollouts} rollouts have ended`);
    });
    print(`${rollouts} rollouts of mini, ${concurrency} at once\n`);
    print(tableOf(requests.slice(beforeWork), { per: rollouts, unit: 'rollout' }));
    print(`\nthe stack while nothing runs, ${idle} s\n`);
    print(tableOf(requests.slice(beforeIdle, beforeWork), { per: idle / 60, unit: 'minute' }));
  } finally {
    await close();
    await stack.close();
  }
}

function tableOf(requests: readonly StoreRequest[], { per, unit }: { readonly per: number; readonly unit: string }) {
  const kinds = [...new Set(requests.map(({ kind }) => kind))].sort();
  const row = (name: string, of: readonly StoreRequest[]): string => {
    const seconds = of.reduce((sum, one) => sum + one.seconds, 0);
    const failed = of.filter(({ status }) => status >= 400 && status !== 404).length;
    const cells = [of.length / per, (1000 * seconds) / per, (1000 * seconds) / Math.max(1, of.length), failed / per];
    return name.padEnd(10) + cells.map((cell) => cell.toFixed(1).padStart(18)).join('');
  };
  const head = ['request'.padEnd(10), `per ${unit}`, `ms per ${unit}`, 'ms each', 'not as required'];
  return [
    head.map((cell, at) => (at === 0 ? cell : cell.padStart(18))).join(''),
    ...kinds.map((kind) =>
      row(
        kind,
        requests.filter((one) => one.kind === kind),
      ),
    ),
    row('all', requests),
  ].join('\n');
}

async function oneRollout(client: Client): Promise<void> {
  const result: RolloutResult = await client.workflow.execute('rollout', {
    taskQueue: controlQueue,
    workflowId: `bench/${randomUUID()}`,
    args: [{ task: 'generated:train/1/0', agent: 'mini', sandbox: 'local', maxTurns: 6 }],
  });
  if (result.outcome !== 'scored') throw new Error(`expected a scored rollout, got ${JSON.stringify(result.failure)}`);
}
