import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { secretOf } from '../../../infra/gateway/secret.ts';
import { type Conversation, createConversation, turnBytes } from './conversation.ts';
import { promptBytesHeader } from './floor-proxy.ts';
import type { FloorProcess, GatewayProcess, MeasuredProcess } from './process.ts';

/** One line of the table: a number of sessions at once, each with a history of this size. */
export interface Cell {
  readonly historyKb: number;
  readonly sessions: number;
  readonly stream: boolean;
}

export interface Figures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Median time until the first byte of the body. */
  readonly firstByteMs: number;
  readonly perSecond: number;
  readonly cpuMs: number;
}

export interface CellFigures extends Cell, Figures {
  /** Memory by which the process grew per opened session; null if there were too few sessions to see it. */
  readonly mbPerSession: number | null;
}

export interface Requested {
  readonly ms: number;
  readonly firstByteMs: number;
}

const path = '/v1/chat/completions';
const hourMs = 3_600_000;
const sessionsToWeigh = 64;

/** Turns of one session, in which its history grows by half. Then its client continues with another session. */
const turnsOf = (historyKb: number): number => Math.max(5, Math.floor((historyKb * 1024) / 2 / turnBytes));

/** Number of sessions that a line of the table opens. */
export function sessionsOf({ historyKb, sessions }: Cell, requests: number): number {
  return sessions * Math.ceil(requests / sessions / turnsOf(historyKb));
}

/** Opens the sessions with their histories, which is not measured, and then measures the turns of all clients. */
export async function measureCell(
  gateway: GatewayProcess,
  stackKey: Uint8Array,
  cell: Cell,
  requests: number,
): Promise<CellFigures> {
  const { historyKb, stream } = cell;
  const clients: SessionClient[] = [];
  try {
    const before = await gateway.residentMb();
    const opened = sessionsOf(cell, requests);
    while (clients.length < opened) {
      const client = await openClient(gateway, stackKey, historyKb * 1024);
      await ask(client, stream);
      clients.push(client);
    }
    const grownMb = (await gateway.residentMb()) - before;
    const mbPerSession = opened < sessionsToWeigh ? null : grownMb / opened;
    const figures = await measureClients(gateway, { cell, requests, clients });
    await Promise.all(clients.map(({ session }) => checkOneBranch(gateway, session)));
    return { ...cell, ...figures, mbPerSession };
  } finally {
    await Promise.all(clients.map(({ pool }) => pool.close()));
  }
}

/**
 * Measures the same requests with the floor proxy. `promptBytes` is the size of the ids that the gateway would send.
 */
export async function measureFloor(
  floor: FloorProcess,
  cell: Cell,
  requests: number,
  promptBytes: number,
): Promise<Figures> {
  const { historyKb, sessions, stream } = cell;
  const pool = new Pool('http://floor', { socketPath: floor.socketPath, connections: sessions, pipelining: 1 });
  try {
    const clients: Client[] = [];
    while (clients.length < sessionsOf(cell, requests)) {
      const headers = { [promptBytesHeader]: String(promptBytes) };
      const client = { pool, headers, conversation: createConversation(historyKb * 1024) };
      await ask(client, stream);
      clients.push(client);
    }
    return await measureClients(floor, { cell, requests, clients });
  } finally {
    await pool.close();
  }
}

interface ClientWork {
  readonly cell: Cell;
  readonly requests: number;
  readonly clients: readonly Client[];
}

async function measureClients(measured: MeasuredProcess, { cell, requests, clients }: ClientWork): Promise<Figures> {
  const { historyKb, sessions, stream } = cell;
  const lanes = Array.from({ length: sessions }, (_, lane) => clients.filter((_, index) => index % sessions === lane));
  const turns = Math.min(turnsOf(historyKb), Math.ceil(requests / clients.length));
  const cpuBefore = await measured.cpuMs();
  const startedAt = performance.now();
  const asked = (await Promise.all(lanes.map((lane) => askInTurn(lane, stream, turns)))).flat();
  const wallMs = performance.now() - startedAt;
  const cpuMs = ((await measured.cpuMs()) - cpuBefore) / asked.length;
  return {
    p50Ms: quantile(asked, 0.5, 'ms'),
    p99Ms: quantile(asked, 0.99, 'ms'),
    firstByteMs: quantile(asked, 0.5, 'firstByteMs'),
    perSecond: (1000 * asked.length) / wallMs,
    cpuMs,
  };
}

interface Client {
  readonly pool: Pool;
  readonly headers: Readonly<Record<string, string>>;
  readonly conversation: Conversation;
}

interface SessionClient extends Client {
  readonly session: string;
}

async function openClient(
  { control, socketOf }: GatewayProcess,
  stackKey: Uint8Array,
  historyBytes: number,
): Promise<SessionClient> {
  const session = `bench-${randomUUID()}`;
  const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 64 };
  const limits = { maxTurns: 100_000, expiresAt: Date.now() + hourMs };
  await control.open({ session, sampling, seed: 'run/1/0/0/1', group: null, ...limits });
  const headers = { authorization: `Bearer ${secretOf(stackKey, session)}` };
  const pool = new Pool('http://gateway', { socketPath: socketOf(session), connections: 1, pipelining: 1 });
  return { session, pool, headers, conversation: createConversation(historyBytes) };
}

async function askInTurn(clients: readonly Client[], stream: boolean, turns: number): Promise<Requested[]> {
  const asked: Requested[] = [];
  for (const client of clients) {
    for (let turn = 0; turn < turns; turn += 1) asked.push(await ask(client, stream));
  }
  return asked;
}

async function ask({ pool, headers, conversation }: Client, stream: boolean): Promise<Requested> {
  return timed(pool, path, conversation.next(stream), headers);
}

export async function timed(
  pool: Pool,
  to: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Requested> {
  const startedAt = performance.now();
  const reply = await sent(pool, {
    method: 'POST',
    path: to,
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
  let firstByteMs = Number.NaN;
  let text = '';
  for await (const chunk of reply.body) {
    if (text === '') firstByteMs = performance.now() - startedAt;
    text += chunk;
  }
  if (reply.statusCode !== 200) throw new Error(`${to}: expected 200, got ${reply.statusCode}: ${text.slice(0, 300)}`);
  return { ms: performance.now() - startedAt, firstByteMs };
}

/** Sends a request, again when the backlog of the socket was full, as an agent's relay does. */
async function sent(pool: Pool, request: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  for (let delayMs = 10; ; delayMs *= 2) {
    try {
      return await pool.request(request);
    } catch (error) {
      const isRefused = error instanceof Error && 'code' in error && error.code === 'EAGAIN';
      if (!isRefused || delayMs > 1_000) throw error;
      await sleep(delayMs);
    }
  }
}

/** Checks that every turn extended the branch: a history that was rendered again would be another measurement. */
async function checkOneBranch({ control }: GatewayProcess, session: string): Promise<void> {
  const { segments } = await control.seal(session);
  if (segments !== 1) throw new Error(`expected every turn to extend the previous one, got ${segments} segments`);
}

export function quantile(asked: readonly Requested[], share: number, key: keyof Requested): number {
  const sorted = asked.map((one) => one[key]).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
