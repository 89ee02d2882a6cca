import type { NetworkPolicy } from '../../workflows/contracts/network.ts';
import { dial } from './dial.ts';
import type { Ledger } from './ledger.ts';
import type { EgressLimits } from './limits.ts';
import type { Network } from './network.ts';
import { requireAllowed } from './policy.ts';
import { EgressRefusedError } from './refused.ts';
import type { Target } from './target.ts';
import { countBytes, type Upstream } from './upstream.ts';

/** The parts by which the proxy of one sandbox decides. */
export interface EgressRules {
  readonly policy: NetworkPolicy;
  readonly network: Network;
  readonly limits: EgressLimits;
  readonly ledger: Ledger;
}

/** A connection that was made, but carries nothing before it is allowed. */
export interface Dialled<Asked extends Target> {
  readonly target: Asked;
  /** Records the connection as an allowed one. */
  allow(): Upstream;
}

/**
 * Lets `carry` use a connection to the target that a request asks for, if the sandbox may have it. Returns the refusal if it may
 * not, and null however else the connection ends.
 */
export async function exchange<Asked extends Target>(
  rules: EgressRules,
  read: () => Asked,
  carry: (dialled: Dialled<Asked>, signal: AbortSignal) => Promise<void>,
  closing: AbortSignal,
): Promise<EgressRefusedError | null> {
  const { policy, limits, ledger } = rules;
  const signal = AbortSignal.any([closing, AbortSignal.timeout(limits.lifetimeMs)]);
  let target: Asked | null = null;
  let release = (): void => undefined;
  try {
    release = ledger.admit();
    target = read();
    requireAllowed(policy, target);
    await overConnection(rules, target, carry, signal);
    return null;
  } catch (error) {
    if (!(error instanceof EgressRefusedError)) return null;
    ledger.decided(target, error.refusal);
    return error;
  } finally {
    release();
  }
}

async function overConnection<Asked extends Target>(
  { network, limits, ledger }: EgressRules,
  target: Asked,
  carry: (dialled: Dialled<Asked>, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const socket = await dial({ network, limits }, target, signal);
  socket.on('error', () => undefined);
  socket.setTimeout(limits.idleMs, () => socket.destroy());
  let finish = (): void => undefined;
  function allow(): Upstream {
    const counted = countBytes(socket, ledger.decided(target, 'allowed'));
    finish = counted.finish;
    return { socket, passage: counted.passage };
  }
  try {
    await carry({ target, allow }, signal);
  } finally {
    socket.destroy();
    finish();
  }
}
