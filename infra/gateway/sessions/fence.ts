import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Lease } from '../../hosts/lease.ts';
import type { OpenSession } from '../control.ts';
import { GatewayError } from '../gateway-error.ts';
import type { Journal } from './journal.ts';

const lookEveryMs = 250;

/**
 * The right of a session to act, which depends on the lease of its host. While the host has none, because it is cut off from
 * the store, requests wait and nothing is written. Once the host was declared lost, the sessions that it had are void for ever:
 * their rollouts have begun again elsewhere.
 */
export interface Fence {
  readonly state: 'valid' | 'expired' | 'fenced';
  /** Throws a GatewayError if the session is void. */
  requireLife(): void;
  /** Resolves when the session may act. Rejects with a GatewayError if it is void, or with the signal's reason. */
  untilValid(signal: AbortSignal): Promise<void>;
  /** Resolves when a request may be answered; it is sent again if that takes too long. */
  admit(): Promise<void>;
  /** Makes a journal refuse what is written without a lease. */
  guard(journal: Journal): Journal;
}

export interface FenceDeps {
  readonly lease: Pick<Lease, 'of'>;
  /** The time that a request waits for the lease. */
  readonly engineGraceMs: number;
}

export function createFence(
  { lease, engineGraceMs }: FenceDeps,
  { session, fence }: Pick<OpenSession, 'session' | 'fence'>,
): Fence {
  const requireLife = (): void => {
    // The relay asks again, since another host may have adopted the session.
    if (lease.of(fence) === 'fenced') throw new GatewayError('gateway-closing', 'the host of this session was lost');
  };

  async function untilValid(signal: AbortSignal): Promise<void> {
    while (lease.of(fence) !== 'valid') {
      requireLife();
      await sleep(lookEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  return {
    get state() {
      return lease.of(fence);
    },
    requireLife,
    untilValid,
    async admit() {
      if (lease.of(fence) === 'valid') return;
      const limit = AbortSignal.timeout(engineGraceMs);
      await untilValid(limit).catch((error: unknown) => {
        throw limit.aborted
          ? new GatewayError('gateway-closing', 'the host is cut off; send the request again')
          : error;
      });
    },
    guard: (journal) => ({
      async append(record) {
        if (lease.of(fence) !== 'valid') throw cutOff(session);
        await journal.append(record);
      },
      close: () => journal.close(),
    }),
  };
}

/** Throws unless a session may be changed now: HostFenced to try again, HostLost if its host was declared lost. */
export function requireLease(
  { lease }: Pick<FenceDeps, 'lease'>,
  opened: Pick<OpenSession, 'session' | 'fence'>,
): void {
  const state = lease.of(opened.fence);
  if (state === 'fenced') {
    throw new TemperFailure(
      'HostLost',
      `session ${opened.session} is void: its host was declared lost as ${opened.fence}`,
    );
  }
  if (state === 'expired') throw cutOff(opened.session);
}

const cutOff = (session: string): TemperFailure =>
  new TemperFailure(
    'HostFenced',
    `session ${session} cannot be changed now: the lease of its host is over, since the host does not reach the store; it is tried again`,
  );
