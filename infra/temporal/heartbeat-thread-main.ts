import { parentPort, workerData } from 'node:worker_threads';
import { type ServiceError, status } from '@grpc/grpc-js';
import { createHeartbeatClient } from './heartbeat-client.ts';
import type { HeartbeatMessage, HeartbeatThreadData } from './heartbeat-thread.ts';

// Heartbeats for the activity attempts of its process while the event loop is too busy to. See heartbeat-thread.ts.

/** The interval of looks at the event loop. */
const lookMs = 250;
/** A loop that stands still for shorter is not busy: its ticks need their time. */
const shortestStillMs = 500;

interface Attempt {
  request: Uint8Array;
  readonly heartbeatTimeoutMs: number;
  dueAtMs: number;
  sending: boolean;
}

const { target, ticks } = workerData as HeartbeatThreadData;
const heartbeats = createHeartbeatClient(target);
const attempts = new Map<number, Attempt>();
let looking: NodeJS.Timeout | undefined;
let ticksSeen = 0;
let ticksSeenAtMs = 0;

parentPort?.on('message', (message: HeartbeatMessage) => {
  const { type, id } = message;
  if (type === 'watch') attempts.set(id, { ...message, dueAtMs: 0, sending: false });
  if (type === 'end') attempts.delete(id);
  if (type === 'report') {
    const attempt = attempts.get(id);
    if (attempt !== undefined) attempt.request = message.request;
  }
  if (attempts.size === 0) {
    clearInterval(looking);
    looking = undefined;
  } else if (looking === undefined) {
    sawTicks(Atomics.load(ticks, 0));
    looking = setInterval(look, lookMs);
  }
});

function sawTicks(count: number): void {
  ticksSeen = count;
  ticksSeenAtMs = performance.now();
}

/**
 * Looks whether the loop stands still. It has sent its own last heartbeat up to a third of the heartbeat timeout ago, and a
 * request may take long on a busy machine: another sixth is waited for.
 */
function look(): void {
  const ticksNow = Atomics.load(ticks, 0);
  if (ticksNow !== ticksSeen) {
    sawTicks(ticksNow);
    return;
  }
  const now = performance.now();
  for (const [id, attempt] of attempts) {
    const busy = now - ticksSeenAtMs >= Math.max(shortestStillMs, attempt.heartbeatTimeoutMs / 6);
    if (busy && !attempt.sending && now >= attempt.dueAtMs) send(id, attempt);
  }
}

/**
 * Sends one heartbeat. A request that fails is repeated at the next look. Of a requested cancel, pause or reset, the event
 * loop learns with its own next heartbeat.
 */
function send(id: number, attempt: Attempt): void {
  attempt.sending = true;
  heartbeats.send(attempt.request, attempt.heartbeatTimeoutMs, (error: ServiceError | null) => {
    attempt.sending = false;
    if (error === null) attempt.dueAtMs = performance.now() + attempt.heartbeatTimeoutMs / 3;
    else if (error.code === status.NOT_FOUND) attempts.delete(id);
  });
}
