import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import { type Claim, claimHost } from '../../infra/hosts/claim.ts';
import { createLease, type HeldLease } from '../../infra/hosts/lease.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { createHosts, type Hosts } from '../../infra/store/hosts.ts';
import { openBucket } from '../../infra/store/s3/open.ts';
import { startS3Server } from './store/s3-server.ts';

/** A host on a home of its own, with the lease of one of its processes. */
export interface TestHost {
  readonly path: string;
  readonly lease: HeldLease;
  /** Opens the lease as another process of the host does. */
  another(): HeldLease;
  /** Copies the home as it is now. */
  copy(): Promise<TestHost>;
  /** Claims the name, and returns the generation. */
  claim(change?: Partial<Claim>): Promise<number>;
}

interface HostStores {
  /** The directory of all homes. It is removed after the tests. */
  readonly root: string;
  /** Opens empty records of hosts, in each kind of store. */
  readonly kinds: Readonly<Record<string, () => Promise<Hosts>>>;
}

/** The state of a test host by its own account. */
export const hostFacts = { version: '1.0.0', capacity: 4, taken: 0, sandboxes: ['local'] } as const;
/** A lease that no test outlives. */
export const longLeaseMs = 600_000;

export async function openHostStores(): Promise<HostStores> {
  const server = await startS3Server();
  const root = await mkdtemp(join(tmpdir(), 'temper-hosts-'));
  after(async () => {
    await server.close();
    await rm(root, { recursive: true, force: true });
  });
  const kinds = {
    'a directory': async () => createHosts(createDirectory(await mkdtemp(join(root, 'home-')))),
    'a bucket': async () => createHosts(openBucket(server.place())),
  };
  return { root, kinds };
}

/** A machine with the name of a host and an empty home, unless there is one. */
export async function hostOn(
  root: string,
  hosts: Hosts,
  machine: string,
  { leaseMs = longLeaseMs, home, name = 'one' }: { leaseMs?: number; home?: string; name?: string } = {},
): Promise<TestHost> {
  const path = join(home ?? (await mkdtemp(join(root, 'lease-'))), 'lease.json');
  const open = (): HeldLease => createLease({ path, host: name, hosts, storeIsLocal: false });
  const lease = open();
  return {
    path,
    lease,
    another: open,
    async copy() {
      const copied = await mkdtemp(join(root, 'lease-'));
      await cp(dirname(path), copied, { recursive: true });
      return hostOn(root, hosts, machine, { leaseMs, home: copied, name });
    },
    async claim(change) {
      const claim = {
        host: name,
        machine,
        lease,
        leaseMs,
        watchMs: 1,
        facts: hostFacts,
        onWatch: () => undefined,
        ...change,
      };
      return (await claimHost(hosts, claim, AbortSignal.timeout(60_000))).generation;
    },
  };
}
