import { Resolver } from 'node:dns/promises';
import { isRefused } from './addresses.ts';

/** The network beyond the proxy. A test names servers of its own here; nothing else replaces the public network. */
export interface Network {
  /** Returns the addresses of a name, or an empty list. */
  resolve(host: string): Promise<readonly string[]>;
  /** Whether an address is closed to every sandbox. */
  refuses(address: string): boolean;
}

/**
 * Creates the public network. Names are resolved by the servers of the machine's resolver alone: not by its hosts file, which names
 * what is inside, and not in the thread pool, which a sandbox could fill.
 */
export function createPublicNetwork(): Network {
  const resolver = new Resolver({ timeout: 3_000, tries: 2 });
  return {
    async resolve(host) {
      const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      return found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    },
    refuses: isRefused,
  };
}
