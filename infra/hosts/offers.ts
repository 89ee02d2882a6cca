import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Hosts } from '../store/hosts.ts';

/** The time for which the records of the hosts are not read again. */
const freshMs = 10_000;

/**
 * Returns a function that tells whether another host of the stack offers a kind of sandbox. One that is drained counts: it may
 * take work again, while this host never has the kind. `now` is a clock that never jumps.
 */
export function createOffers(
  hosts: Pick<Hosts, 'names' | 'find'>,
  own: string,
  now: () => number = () => performance.now(),
): (kind: SandboxKind) => Promise<boolean> {
  let read: { readonly atMs: number; readonly kinds: Promise<ReadonlySet<SandboxKind>> } | null = null;

  async function readKinds(): Promise<ReadonlySet<SandboxKind>> {
    const others = (await hosts.names()).filter((name) => name !== own);
    const found = await Promise.all(others.map((name) => hosts.find(name)));
    return new Set(found.flatMap((host) => (host === null || host.record.lost !== null ? [] : host.record.sandboxes)));
  }

  return async (kind) => {
    if (read === null || now() - read.atMs > freshMs) {
      const kinds = readKinds();
      read = { atMs: now(), kinds };
      kinds.catch(() => {
        read = null;
      });
    }
    return (await read.kinds).has(kind);
  };
}
