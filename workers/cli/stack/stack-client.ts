import type { Client } from '@temporalio/client';
import type { Config } from '../../../infra/settings/config.ts';
import { identityOf } from '../../../infra/stack.ts';
import type { Records } from '../../../infra/store/records.ts';
import { openSharedState, type SharedState } from '../../../infra/store/shared-state.ts';
import type { Store } from '../../../infra/store/store.ts';
import { type ClientConnection, configuredTarget, connectClient } from '../../../infra/temporal/connection.ts';
import { isPortFree } from '../../../infra/temporal/ports.ts';
import { refuseOtherStack } from '../../../infra/temporal/stack-namespace.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { isUp, readUpFile } from '../../up/up-file.ts';
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

/** A stack as commands see it that read records: its Temporal server may be away. */
export interface ReadableStack extends Omit<StackClient, 'client'> {
  /** The client of the server, or the reason why it has none. */
  readonly server: Client | Error;
}

const runsHere = async ({ paths }: Config): Promise<boolean> => {
  const up = await readUpFile(paths.up);
  return up !== null && isUp(up);
};

const notRunning = ({ home, temporalPort }: Config): Error =>
  new Error(
    `no stack runs on ${home}, and 127.0.0.1:${temporalPort} is the Temporal server of another one; ` +
      'start one with `temper up`, or name the other with --home or TEMPORAL_ADDRESS',
  );

/**
 * Connects to the stack of a config. Throws if its Temporal server does not answer, or is another stack's. While the store is away
 * nothing says whose the server is: a run can be paused or cancelled all the same.
 */
export async function openStackClient(config: Config): Promise<StackClient> {
  const { server, close, ...stack } = await openReadableStack(config);
  if (server instanceof Error) throw server;
  return { ...stack, client: server, close };
}

/** Opens the store of a stack, and connects to its Temporal server if that answers. Throws if it is another stack's. */
export async function openReadableStack(config: Config): Promise<ReadableStack> {
  const shared = await openSharedState(config.store);
  const stack = { config, shared, store: shared.blobs, records: shared.runs };
  const connected = await connect(config).catch((error: Error) => error);
  if (connected instanceof Error) return { ...stack, server: connected, close: async () => {} };
  const { client, close } = connected;
  const isNamed = configuredTarget(config.env) !== undefined || (await runsHere(config));
  if (!isNamed && (await identityOf(shared.objects)) === null) {
    await close();
    throw notRunning(config);
  }
  try {
    await refuseOtherStack({ objects: shared.objects, client }).catch((error: unknown) => {
      if (!(error instanceof TemperFailure) || error.type !== 'StoreUnavailable') {
        throw isNamed ? error : notRunning(config);
      }
      note(`cannot compare the Temporal server with the store: ${error.message}`);
    });
  } catch (error) {
    await close();
    throw error;
  }
  return { ...stack, server: client, close };
}

async function connect(config: Config): Promise<ClientConnection> {
  if (configuredTarget(config.env) === undefined && (await isPortFree(config.temporalPort))) {
    throw new Error(
      `no stack runs on ${config.home}: nothing listens on 127.0.0.1:${config.temporalPort}; ` +
        'start one with `temper up`, or name another one with --home or TEMPORAL_ADDRESS',
    );
  }
  return connectClient(temporalTarget(config));
}
