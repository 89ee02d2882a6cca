import { status } from '@grpc/grpc-js';
import { Client, Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnection, NativeConnectionOptions } from '@temporalio/worker';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { patientWaits } from './patient-waits.ts';
import { findTlsFault } from './tls-fault.ts';

const defaultAddress = '127.0.0.1:7233';
const defaultNamespace = 'default';
const connectTimeoutMs = 10_000;

/** The address of a Temporal server and the settings of a connection to it, including TLS and API key. */
export interface TemporalTarget {
  readonly address: string;
  readonly namespace: string;
  readonly tls: Exclude<NativeConnectionOptions['tls'], undefined>;
  readonly apiKey: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Reads the target as every Temporal tool does: `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY` and `TEMPORAL_TLS_*`
 * override the profile (`TEMPORAL_PROFILE`) of `temporal.toml`. Undefined if none of them gives an address.
 */
export function configuredTarget(
  env: Readonly<Record<string, string | undefined>>,
  profile?: string,
): TemporalTarget | undefined {
  const { connectionOptions, namespace } = loadProfile(env, profile);
  const { address, tls, apiKey, metadata } = connectionOptions;
  if (address === undefined) return undefined;
  if (apiKey !== undefined && typeof apiKey !== 'string') throw new Error('expected an API key as a string');
  return {
    address,
    namespace: namespace ?? defaultNamespace,
    tls: tls ?? false,
    apiKey,
    metadata: plainMetadata(metadata),
  };
}

/** A server without TLS, such as temper's own dev server. */
export function plainTarget(address: string = defaultAddress, namespace: string = defaultNamespace): TemporalTarget {
  return { address, namespace, tls: false, apiKey: undefined, metadata: {} };
}

/** A client and the connection that it uses. */
interface TemporalConnection<Transport extends Connection | NativeConnection> {
  readonly connection: Transport;
  readonly client: Client;
  close(): Promise<void>;
}

export type ClientConnection = TemporalConnection<Connection>;
export type WorkerConnection = TemporalConnection<NativeConnection>;

/** Connects a client that starts, signals and queries workflows. */
export function connectClient(target: TemporalTarget): Promise<ClientConnection> {
  const options: ConnectionOptions = {
    ...connectionOptions(target),
    connectTimeout: connectTimeoutMs,
    interceptors: [patientWaits],
  };
  return openClient(target, () => Connection.connect(options));
}

/** Connects a worker and a client that share one native connection. */
export function connectWorker(target: TemporalTarget): Promise<WorkerConnection> {
  return openClient(target, async () => {
    // Only workers load this part of the SDK, which takes a third of a second: the commands of the CLI need the client alone.
    const { NativeConnection } = await import('@temporalio/worker');
    return NativeConnection.connect(connectionOptions(target));
  });
}

async function openClient<Transport extends Connection | NativeConnection>(
  target: TemporalTarget,
  connect: () => Promise<Transport>,
): Promise<TemporalConnection<Transport>> {
  const connection = await connect().catch(async (error: unknown) => {
    throw await unreachable(target, error);
  });
  try {
    await requireNamespace(connection, target);
  } catch (error) {
    await connection.close();
    throw error;
  }
  const client = new Client({ connection, namespace: target.namespace });
  return { connection, client, close: () => connection.close() };
}

function loadProfile(env: Readonly<Record<string, string | undefined>>, profile: string | undefined) {
  try {
    return loadClientConnectConfig({
      overrideEnvVars: definedOnly(env),
      ...(profile === undefined ? {} : { profile }),
    });
  } catch (error) {
    throw new Error(
      `expected a readable Temporal profile, got: ${errorMessage(error)}; ` +
        'correct TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE, or the variable of TEMPORAL_TLS_* that names the file',
      { cause: error },
    );
  }
}

async function requireNamespace(connection: Connection | NativeConnection, target: TemporalTarget): Promise<void> {
  try {
    await connection.withDeadline(Date.now() + connectTimeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace: target.namespace }),
    );
  } catch (error) {
    throw await unreachable(target, error);
  }
}

async function unreachable(target: TemporalTarget, cause: unknown): Promise<Error> {
  const how = `${target.tls === false ? 'without TLS' : 'with TLS'}, ${target.apiKey === undefined ? 'no API key' : 'an API key'}`;
  return new Error(
    `no Temporal server at ${target.address} with the namespace ${target.namespace} (${how}): ${errorMessage(cause)}; ` +
      ((await remedyOf(target, codeOf(cause))) ??
        'check TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and the profile, or start one with `temper up`'),
    { cause },
  );
}

/** Advice on a server that refuses a connection or does not understand it; null if only the address can be wrong. */
async function remedyOf(target: TemporalTarget, code: status | undefined): Promise<string | null> {
  if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED) {
    return target.apiKey === undefined
      ? 'the server wants an API key: set TEMPORAL_API_KEY'
      : 'the server does not accept the API key for this namespace: correct TEMPORAL_API_KEY or its permissions';
  }
  if (code === status.NOT_FOUND) {
    return 'create the namespace with `temporal operator namespace create`, or correct TEMPORAL_NAMESPACE';
  }
  return findTlsFault(target);
}

/** The status code with which a server has refused a call. A native connection has it only as text. */
function codeOf(error: unknown): status | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return cause.code;
    if (/not have permission|unauthorized|unauthenticated/i.test(cause.message)) return status.PERMISSION_DENIED;
    if (/namespace .*not found/i.test(cause.message)) return status.NOT_FOUND;
  }
  return undefined;
}

function connectionOptions(target: TemporalTarget) {
  return {
    address: target.address,
    tls: target.tls,
    metadata: { ...target.metadata },
    ...(target.apiKey === undefined ? {} : { apiKey: target.apiKey }),
  };
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function plainMetadata(metadata: NativeConnectionOptions['metadata']): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, String(value)]));
}
