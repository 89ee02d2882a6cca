import type { Client } from '@temporalio/client';
import type { Config } from '../../../infra/settings/config.ts';
import type { Records } from '../../../infra/store/records.ts';
import { openSharedState, type SharedState } from '../../../infra/store/shared-state.ts';
import type { Store } from '../../../infra/store/store.ts';
import { configuredTarget, connectClient } from '../../../infra/temporal/connection.ts';
import { isPortFree } from '../../../infra/temporal/ports.ts';
import { refuseOtherStack } from '../../../infra/temporal/stack-namespace.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { note } from '../text/output.ts';

/** A stack as commands see it: its workflows, its blobs and its records. */
export interface StackClient {
  readonly config: Config;
  readonly client: Client;
  readonly shared: SharedState;
  readonly store: Store;
  readonly records: Records;
  close(): Promise<void>;
}

/**
 * Connects to the stack of a config. Throws if its Temporal server does not answer, or is another stack's. While the store is away
 * nothing says whose the server is: a run can be paused or cancelled all the same.
 */
export async function openStackClient(config: Config): Promise<StackClient> {
  if (configuredTarget(config.env) === undefined && (await isPortFree(config.temporalPort))) {
    throw new Error(
      `no stack runs on ${config.home}: nothing listens on 127.0.0.1:${config.temporalPort}; ` +
        'start one with `temper up`, or name another one with --home or TEMPORAL_ADDRESS',
    );
  }
  const shared = await openSharedState(config.store);
  const { client, close } = await connectClient(temporalTarget(config));
  try {
    await refuseOtherStack({ objects: shared.objects, client }).catch((error: unknown) => {
      if (!(error instanceof TemperFailure) || error.type !== 'StoreUnavailable') throw error;
      note(`cannot compare the Temporal server with the store: ${error.message}`);
    });
  } catch (error) {
    await close();
    throw error;
  }
  return { config, client, shared, store: shared.blobs, records: shared.runs, close };
}
