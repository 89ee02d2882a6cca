import { it } from 'node:test';
import type { Sandbox, SandboxProvider, SandboxSpec } from '../../../infra/sandbox/sandbox.ts';

/** The pause that a provider asks for in seconds; null for none. */
export type RetryAfter = number | null;

/** The means to cause each fault of a provider; a sentence says why the fault cannot happen to this kind. */
export interface Faults {
  /** Makes the next creation succeed at the provider, while its answer is lost. */
  readonly loseCreation: (() => void) | string;
  /** Makes the provider refuse that many creations for now. */
  readonly throttle: ((times: number, retryAfterSec: RetryAfter) => void) | string;
  /** True if the kind learns the pause that its provider asks for; otherwise the reason why it does not. */
  readonly retryAfter: true | string;
  /** Makes lists show what they show now, until the returned function is called. */
  readonly lagLists: (() => Promise<() => void>) | string;
  /** Ends a sandbox from outside of temper, as its provider might. */
  readonly vanish: (name: string) => Promise<unknown>;
  /** Breaks the connections of all streams. */
  readonly cutStreams: (() => void) | string;
  /** Returns the time at which the provider itself ends a sandbox. */
  readonly endOf: ((name: string) => Promise<number>) | string;
  /** Moves the provider's clock ahead of this host's, until the returned function is called. */
  readonly skewClock: ((ms: number) => () => void) | string;
}

/** One stack on one provider that fails. */
export interface FaultBench {
  readonly provider: SandboxProvider;
  readonly signal: AbortSignal;
  readonly faults: Faults;
  /** Names a sandbox, which is removed after all tests. */
  spec(name: string): SandboxSpec;
  /** Runs a script, and returns its output. */
  say(sandbox: Sandbox, script: string): Promise<string>;
}

export const minuteMs = 60_000;

/** Runs a test if the kind has the means; otherwise prints why the fault cannot happen, which is no test. */
export function whereItHappens<Means>(
  title: string,
  means: Means | string,
  test: (means: Means) => Promise<void>,
): void {
  if (typeof means === 'string') console.log(`not tested, since it cannot happen (${means}): ${title}`);
  else it(title, () => test(means));
}
