import { claimHost } from '../../../infra/hosts/claim.ts';
import { leaseMsOf } from '../../../infra/hosts/lease-times.ts';
import { readMachineId } from '../../../infra/hosts/machine.ts';
import { packageVersion } from '../../../infra/package-version.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { openLease } from '../../../workers/claim-host.ts';
import { openState } from '../../../workers/open-state.ts';

/** Claims the name of the host, as its host worker does: without a lease a gateway answers nothing. The gateway renews it. */
export async function claimForGateway(config: Config): Promise<void> {
  const state = await openState(config);
  await claimHost(
    state.hosts,
    {
      host: config.host,
      machine: await readMachineId(config.paths.machine),
      lease: openLease(config, state),
      leaseMs: leaseMsOf(config.hostLostAfterMs),
      watchMs: config.hostLostAfterMs,
      facts: { version: packageVersion(), capacity: 1, taken: 0, sandboxes: [] },
      onWatch: () => undefined,
    },
    new AbortController().signal,
  );
}
