import type { NetworkPolicy } from '../../workflows/contracts/network.ts';
import { EgressRefusedError } from './refused.ts';
import type { Target } from './target.ts';

/** Throws EgressRefusedError for a target that a policy does not have. */
export function requireAllowed({ mode, hosts, ports }: NetworkPolicy, { host, port }: Target): void {
  const isListed = mode === 'public' || (mode === 'allowlist' && hosts.some((pattern) => matches(pattern, host)));
  if (!isListed) throw new EgressRefusedError('host-refused', host);
  if (!ports.includes(port)) throw new EgressRefusedError('port-refused', `${host}:${port}`);
}

/** Whether a host matches a pattern: it is that name or, for `*.name`, a name below it. */
const matches = (pattern: string, host: string): boolean =>
  pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
