import { hostName } from '../../workflows/contracts/network.ts';
import { EgressRefusedError } from './refused.ts';

/** A host and a port, in the one form in which the policy, the resolver and the record see them. */
export interface Target {
  /** The name in lower case, never an address. */
  readonly host: string;
  readonly port: number;
}

/**
 * Reads `host:port`. Refuses every text that another program could read as another host: addresses in any notation, users, a
 * trailing dot, and characters beyond ASCII.
 */
export function readAuthority(text: string, defaultPort: number | null): Target {
  const [, host = '', digits] = /^([^:]*)(?::([1-9][0-9]{0,4}))?$/.exec(text) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  const lower = host.toLowerCase();
  if (port === null || port > 65_535 || !hostName.test(lower)) {
    throw new EgressRefusedError('bad-request', 'expected the name of a host and a port, not an address');
  }
  return { host: lower, port };
}

/** Reads the address of a request for an `http:` address, as a client sends it to a proxy. */
export function readHttpAddress(text: string): Target & { readonly path: string } {
  const [, authority, path = ''] = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(text) ?? [];
  if (authority === undefined) {
    throw new EgressRefusedError('bad-request', 'expected an address that begins with http://, or the method CONNECT');
  }
  return { ...readAuthority(authority, 80), path: path.startsWith('/') ? path : `/${path}` };
}
