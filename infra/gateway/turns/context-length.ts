import { setTimeout as sleep } from 'node:timers/promises';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Engine } from '../../engine/engine.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';

/**
 * The engine's context length in tokens; null where the engine reports none: then no limit is known, and the engine itself
 * refuses prompts that are too long. It is read again each minute, since an engine may be restarted with another one.
 */
export interface ContextLength {
  /** Returns the context length. Waits for an engine that is away, and calls `onUnavailable` each time it is. */
  wait(onUnavailable: () => void, signal: AbortSignal): Promise<number | null>;
  /** Returns the context length without waiting; null also when the engine does not answer at once. */
  look(): Promise<number | null>;
}

const lookMs = 2_000;

export function createContextLength(
  engine: Pick<Engine, 'health'>,
  engineGraceMs: number,
  freshMs: number = limits.contextFreshMs,
): ContextLength {
  let known: { readonly length: number | null } | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;

  const ask = async (signal: AbortSignal): Promise<void> => {
    known = { length: (await engine.health(signal)).contextLength };
    askedAt = performance.now();
  };

  /** Reads the length again when it is old. A failure keeps the earlier answer. */
  const refresh = async (): Promise<void> => {
    if (known !== undefined && performance.now() - askedAt < freshMs) return;
    looking ??= ask(AbortSignal.timeout(lookMs))
      .catch(() => {
        askedAt = performance.now();
      })
      .finally(() => {
        looking = undefined;
      });
    await looking;
  };

  async function wait(onUnavailable: () => void, signal: AbortSignal): Promise<number | null> {
    if (known !== undefined) await refresh();
    for (const startedAt = performance.now(); known === undefined; ) {
      try {
        await ask(signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof TemperFailure) || error.type !== 'EngineUnavailable') throw error;
        onUnavailable();
        if (performance.now() - startedAt >= engineGraceMs) {
          throw new GatewayError('engine-unavailable', error.message, { cause: error });
        }
        await sleep(limits.retryMaxMs / 4, undefined, { signal });
      }
    }
    return known.length;
  }

  async function look(): Promise<number | null> {
    await refresh();
    return known?.length ?? null;
  }

  return { wait, look };
}
