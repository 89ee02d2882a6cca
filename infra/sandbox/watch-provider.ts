import { setTimeout as delay } from 'node:timers/promises';
import { LastingRefusal, SandboxFailure } from './failure.ts';
import type { SandboxKind, SandboxProvider } from './sandbox.ts';

/** Failures in a row after which a provider counts as failing. */
const mostFailures = 3;
/** The interval at which a provider that fails, or keeps a caller waiting, is looked at, and the time that it has to answer. */
const lookEveryMs = 10_000;
/** The intervals after which a look that was never answered is given up, and another one begins. */
const mostIntervals = 6;

export interface ProviderWatch {
  readonly kind: SandboxKind;
  /** The reason why the provider counts as failing; null if it works. */
  readonly failing: string | null;
}

interface WatchOptions {
  readonly onChange: (watch: ProviderWatch) => void;
  readonly everyMs?: number;
}

/**
 * Watches whether a provider does what a host needs for new work. It fails after three failures in a row: sandboxes that it could
 * not give, or looks at a provider that keeps a caller waiting, which it answers late or with a reason why it is not ready. It works
 * again with the next sandbox, or once it is ready at one of the looks that follow.
 */
export function watchProvider(
  provider: SandboxProvider,
  { onChange, everyMs = lookEveryMs }: WatchOptions,
): SandboxProvider {
  let failures = 0;
  let failing: string | null = null;
  let waiting = 0;
  let looking: NodeJS.Timeout | undefined;
  let unanswered: symbol | null = null;
  let askedAtMs = 0;

  const tell = (reason: string | null): void => {
    if ((failing === null) === (reason === null)) return;
    failing = reason;
    onChange({ kind: provider.kind, failing });
    followUp();
  };
  const works = (): void => {
    failures = 0;
    tell(null);
  };
  const fails = (reason: string): void => {
    failures += 1;
    if (failures >= mostFailures) tell(reason);
  };
  const look = async (): Promise<void> => {
    const nowMs = performance.now();
    // One that has not answered yet is not asked twice.
    if (unanswered !== null && nowMs - askedAtMs < mostIntervals * everyMs) return fails(noAnswer(everyMs));
    const question = Symbol('question');
    unanswered = question;
    askedAtMs = nowMs;
    try {
      const asked = provider.describe().finally(() => {
        if (unanswered === question) unanswered = null;
      });
      const found = await Promise.race([asked, delay(everyMs, null, { ref: false })]);
      if (found === null) fails(noAnswer(everyMs));
      else if (found.ready) works();
      else fails(found.summary);
    } catch (error) {
      fails(String(error));
    }
  };
  function followUp(): void {
    const isNeeded = waiting > 0 || failing !== null;
    if (isNeeded) looking ??= setInterval(() => void look(), everyMs).unref();
    else {
      clearInterval(looking);
      looking = undefined;
    }
  }
  async function watched<Result>(call: Promise<Result>): Promise<Result> {
    waiting += 1;
    followUp();
    try {
      const result = await call;
      works();
      return result;
    } catch (error) {
      if (isOfProvider(error)) fails(error.message);
      throw error;
    } finally {
      waiting -= 1;
      followUp();
    }
  }

  return {
    ...provider,
    ensure: (spec, signal) => watched(provider.ensure(spec, signal)),
    attach: (name) => watched(provider.attach(name)),
    close: async () => {
      clearInterval(looking);
      await provider.close();
    },
  };
}

const noAnswer = (ms: number): string => `it does not answer within ${ms / 1000} s`;

const isOfProvider = (error: unknown): error is SandboxFailure =>
  error instanceof SandboxFailure && error.type === 'SandboxUnavailable' && !(error instanceof LastingRefusal);
