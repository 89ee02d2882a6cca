import { setTimeout as delay } from 'node:timers/promises';
import { ThrottledFailure } from '../../workflows/contracts/throttled-failure.ts';
import type { Sandbox, SandboxOrder, SandboxProvider } from './sandbox.ts';

/** The time that a creation waits for a provider that throttles it, before its stage fails and is retried. */
const longestWaitMs = 300_000;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

type Pause = (ms: number, signal: AbortSignal) => Promise<unknown>;
const sleep: Pause = (ms, signal) => delay(ms, undefined, { signal });

/**
 * Gets or creates a sandbox, and waits while its provider throttles that, which costs no attempt of the stage. The time of the
 * wait is added to the sandbox's lifetime.
 */
export async function ensureSandbox(
  provider: Pick<SandboxProvider, 'ensure'>,
  spec: SandboxOrder,
  signal: AbortSignal,
  pause: Pause = sleep,
): Promise<Sandbox> {
  let waitedMs = 0;
  for (let tries = 1; ; tries++) {
    try {
      const expiresAtMs = spec.labels.expiresAtMs + waitedMs;
      return await provider.ensure({ ...spec, labels: { ...spec.labels, expiresAtMs } }, signal);
    } catch (error) {
      if (!(error instanceof ThrottledFailure)) throw error;
      const pauseMs = pauseAfter(error, tries);
      if (waitedMs + pauseMs > longestWaitMs) throw error;
      await pause(pauseMs, signal);
      waitedMs += pauseMs;
    }
  }
}

/**
 * Returns the pause before the next try: never less than the provider asked for, and random, so that hosts do not come
 * back at once.
 */
function pauseAfter({ retryAfterMs }: ThrottledFailure, tries: number): number {
  const ownMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (tries - 1)) * (0.5 + Math.random());
  return Math.round(Math.max(ownMs, (retryAfterMs ?? 0) * (1 + Math.random() / 4)));
}
