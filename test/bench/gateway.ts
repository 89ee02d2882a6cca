/**
 * Measures what the gateway adds to an engine's answer: the real gateway process on one core, over its socket, with an
 * engine that answers at once. Run it on an idle machine.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Pool } from 'undici';
import { loadModel, type Model } from '../../infra/kits/chat-tokens/index.ts';
import { readConfigWith } from '../../infra/settings/config.ts';
import { openStackId, openStackKeys } from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import {
  type Cell,
  type CellFigures,
  type Figures,
  measureCell,
  measureFloor,
  quantile,
  type Requested,
  sessionsOf,
  timed,
} from './gateway/cell.ts';
import { createConversation, replyText } from './gateway/conversation.ts';
import { measureFsyncMs } from './gateway/disk.ts';
import {
  canPin,
  type FloorProcess,
  type GatewayProcess,
  pinClient,
  startFloorProxy,
  startGatewayProcess,
  startZeroEngine,
  type ZeroEngine,
} from './gateway/process.ts';
import { interruptible, orAborted } from './interruptible.ts';

/** A cell whose histories are larger in total is measured only on request, since opening them takes longest of all. */
const largestTotalKb = 32 * 1024;

const cells: readonly Cell[] = [4, 64, 256].flatMap((historyKb) =>
  [1, 16, 128, 1000].flatMap((sessions) => [false, true].map((stream) => ({ historyKb, sessions, stream }))),
);

/** Measured first and not printed, since a process that has just started runs code that is not compiled yet. */
const warmUp = { cell: { historyKb: 4, sessions: 16, stream: true }, requests: 3_000 } as const;

const columns = [
  'history',
  'sessions',
  'reply',
  'p50 ms',
  'p99 ms',
  'added p50',
  'added p99',
  'fsync p50',
  'first byte',
  '/s',
  'CPU ms',
  'MB/session',
  'floor p50',
  'floor CPU',
];
const pad = (values: readonly string[]): string => values.map((value) => value.padStart(10)).join(' ');

await new Command('npm run bench:gateway --')
  .description('Measures what the gateway adds to an engine that answers at once. Run it on an idle machine.')
  .option('--requests <n>', 'requests per line of the table', wholeNumber(50, 1_000_000), 2000)
  .option('--history <kb>', 'measure only this length of history', wholeNumber(1, 256))
  .option('--sessions <n>', 'measure only this number of sessions', wholeNumber(1, 1000))
  .option('--model <dir>', 'model directory to render with (default: the bundled one)')
  .option('--cpu-prof <dir>', 'write a CPU profile of the gateway to this directory')
  .option('--json', 'print one JSON object per line of the table')
  .action(({ requests, history, sessions, model, json, cpuProf }) => {
    const chosen = cells.filter(
      (cell) => (history ?? cell.historyKb) === cell.historyKb && (sessions ?? cell.sessions) === cell.sessions,
    );
    const options = {
      requests,
      modelDir: model,
      profileDir: cpuProf,
      json: json === true,
      includeLarge: history !== undefined && sessions !== undefined,
    };
    return interruptible('stopping the gateway', (signal) => main(chosen, options, signal));
  })
  .parseAsync();

interface BenchmarkOptions {
  readonly requests: number;
  readonly modelDir: string | undefined;
  readonly profileDir: string | undefined;
  readonly json: boolean;
  readonly includeLarge: boolean;
}

async function main(chosen: readonly Cell[], options: BenchmarkOptions, signal: AbortSignal): Promise<void> {
  const { modelDir, profileDir } = options;
  pinClient();
  const home = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  const model = await loadModel(modelDir ?? readConfigWith({}).modelDir);
  const engine = await startZeroEngine(replyIdsOf(model));
  const config = readConfigWith({
    TEMPER_HOME: home,
    TEMPER_ENGINE_URLS: engine.url,
    ...(modelDir !== undefined && { TEMPER_MODEL_DIR: modelDir }),
  });
  const objects = createDirectory(home);
  await openStackId(config.paths, objects);
  const [key] = await openStackKeys(config, objects);
  const gateway = await startGatewayProcess(config, profileDir);
  const floor = await startFloorProxy(engine.url, home);
  try {
    await orAborted(measureCells({ model, engine, gateway, floor, key, home }, chosen, options), signal);
  } finally {
    await gateway.close();
    await floor.close();
    await engine.close();
    await rm(home, { recursive: true, force: true });
  }
}

interface Measured {
  readonly model: Model;
  readonly engine: ZeroEngine;
  readonly gateway: GatewayProcess;
  readonly floor: FloorProcess;
  readonly key: Uint8Array;
  readonly home: string;
}

async function measureCells(
  { model, engine, gateway, floor, key, home }: Measured,
  chosen: readonly Cell[],
  { requests, json, includeLarge }: BenchmarkOptions,
): Promise<void> {
  await measureCell(gateway, key, warmUp.cell, warmUp.requests);
  await measureFloor(floor, warmUp.cell, warmUp.requests, promptBytesOf(model, warmUp.cell));
  const direct = await measureDirect(engine.url, requests);
  if (!json) printHead(direct, requests);
  for (const cell of chosen) {
    // A few requests with long histories take as long as many with short ones.
    const asked = Math.max(cell.sessions, Math.round(requests / (cell.historyKb / 4)), 50);
    if (!includeLarge && cell.historyKb * sessionsOf(cell, asked) > largestTotalKb) {
      console.log(json ? JSON.stringify({ ...cell, leftOut: true }) : skipped(cell));
      continue;
    }
    const fsyncMs = measureFsyncMs(home);
    const figures = await measureCell(gateway, key, cell, asked);
    const floorFigures = await measureFloor(floor, cell, asked, promptBytesOf(model, cell));
    const all = { ...figures, fsyncMs, direct, floor: floorFigures };
    console.log(json ? JSON.stringify(all) : lineOf(all));
  }
}

function promptBytesOf({ tokens }: Model, { historyKb }: Cell): number {
  return tokens.encode(createConversation(historyKb * 1024).next(false)).join(',').length;
}

function replyIdsOf({ tokens, stopTokenIds }: Model): readonly number[] {
  return [...tokens.encode(replyText), ...stopTokenIds.slice(0, 1)];
}

interface Direct {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly firstByteMs: number;
}

/** Measures the engine without a gateway, one request after the other. */
async function measureDirect(url: string, requests: number): Promise<Direct> {
  const pool = new Pool(url, { connections: 1 });
  const body = JSON.stringify({ token_ids: Array.from({ length: 1000 }, (_, index) => index % 256), stream: true });
  const asked: Requested[] = [];
  for (let index = 0; index < requests; index += 1) asked.push(await timed(pool, '/inference/v1/generate', body));
  await pool.close();
  const settled = asked.slice(Math.floor(asked.length / 4));
  return {
    p50Ms: quantile(settled, 0.5, 'ms'),
    p99Ms: quantile(settled, 0.99, 'ms'),
    firstByteMs: quantile(settled, 0.5, 'firstByteMs'),
  };
}

function printHead(direct: Direct, requests: number): void {
  const core = canPin ? 'on one core' : 'not pinned: this machine has one core';
  console.log(`gateway ${core}; about ${requests} requests per line, fewer with long histories`);
  console.log(
    'floor: a proxy that only parses the request, sends the engine a prompt of the same size, and writes a record to disk',
  );
  console.log('fsync: the disk alone, appending a record to a file beside the journals');
  console.log(`the engine alone: p50 ${direct.p50Ms.toFixed(2)} ms, p99 ${direct.p99Ms.toFixed(2)} ms\n`);
  console.log(pad(columns));
}

function skipped({ historyKb, sessions, stream }: Cell): string {
  const name = pad([`${historyKb} KB`, String(sessions), stream ? 'stream' : 'whole']);
  return `${name}  skipped, since it takes long; measure it with --history ${historyKb} --sessions ${sessions}`;
}

interface Line extends CellFigures {
  readonly fsyncMs: number;
  readonly direct: Direct;
  readonly floor: Figures;
}

function lineOf({ direct, floor, fsyncMs, ...figures }: Line): string {
  const { historyKb, sessions, stream, p50Ms, p99Ms, firstByteMs, perSecond, cpuMs, mbPerSession } = figures;
  const added = [(p50Ms - direct.p50Ms).toFixed(2), (p99Ms - direct.p99Ms).toFixed(2)];
  const first = `+${(firstByteMs - direct.firstByteMs).toFixed(2)}`;
  const times = [p50Ms.toFixed(2), p99Ms.toFixed(2), ...added, fsyncMs.toFixed(2), first];
  const costs = [perSecond.toFixed(0), cpuMs.toFixed(2), mbPerSession?.toFixed(2) ?? ''];
  const least = [floor.p50Ms.toFixed(2), floor.cpuMs.toFixed(2)];
  return pad([`${historyKb} KB`, String(sessions), stream ? 'stream' : 'whole', ...times, ...costs, ...least]);
}
