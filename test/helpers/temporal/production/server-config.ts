import { type Postgresql, superuser } from './postgresql.ts';

export interface Ports extends Readonly<Record<Service, { readonly rpc: number; readonly membership: number }>> {
  readonly metrics: number;
}

type Service = 'frontend' | 'internalFrontend' | 'history' | 'matching' | 'worker';

export interface ServerOptions {
  /** The certificates by which the server and its clients know each other. Default: no TLS. */
  readonly tls?: {
    readonly certFile: string;
    readonly keyFile: string;
    readonly caFile: string;
    /** The authorities of clients, if they are others. */
    readonly clientCaFile?: string;
    /** Whether clients must have a certificate of the same authority. */
    readonly requireClient: boolean;
    readonly serverName: string;
  };
  /** The address of the public keys (JWKS) with which API keys (JWT) are checked. Default: none is asked for. */
  readonly keys?: string;
  /** Dynamic configuration beside that of every test. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

interface Parts extends ServerOptions {
  readonly ports: Ports;
  readonly postgresql: Pick<Postgresql, 'port'>;
  readonly dynamicFile: string;
}

/** The configuration of a server with all of its services in one process, as in `config/development-postgres12.yaml` of its sources. */
export function serverConfig({ ports, postgresql, dynamicFile, tls, keys }: Parts): object {
  const store = (databaseName: string, connections: number) => ({
    sql: {
      pluginName: 'postgres12',
      databaseName,
      connectAddr: `127.0.0.1:${postgresql.port}`,
      connectProtocol: 'tcp',
      user: superuser,
      // As many idle ones as there may be, or the server would connect again and again.
      maxConns: connections,
      maxIdleConns: connections,
      maxConnLifetime: '1h',
    },
  });
  const service = ({ rpc, membership }: Ports[Service]) => ({
    rpc: { grpcPort: rpc, membershipPort: membership, bindOnIP: '127.0.0.1' },
  });
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: 4,
      datastores: { default: store('temporal', 20), visibility: store('temporal_visibility', 5) },
    },
    global: {
      membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' },
      metrics: { prometheus: { timerType: 'histogram', listenAddress: `127.0.0.1:${ports.metrics}` } },
      ...(tls !== undefined && { tls: tlsConfig(tls, keys !== undefined) }),
      ...(keys !== undefined && {
        authorization: {
          jwtKeyProvider: { keySourceURIs: [keys] },
          authorizer: 'default',
          claimMapper: 'default',
        },
      }),
    },
    services: {
      frontend: service(ports.frontend),
      history: service(ports.history),
      matching: service(ports.matching),
      worker: service(ports.worker),
      // With keys, the server's own workers have none: they come in by a door of their own.
      ...(keys !== undefined && { 'internal-frontend': service(ports.internalFrontend) }),
    },
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: `127.0.0.1:${ports.frontend.rpc}`,
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    ...(keys === undefined && { publicClient: { hostPort: `127.0.0.1:${ports.frontend.rpc}` } }),
    dynamicConfigClient: { filepath: dynamicFile, pollInterval: '10s' },
  };
}

function tlsConfig(tls: Required<ServerOptions>['tls'], internal: boolean): object {
  const { certFile, keyFile, caFile, clientCaFile = caFile, requireClient, serverName } = tls;
  const client = { serverName, rootCaFiles: [caFile] };
  return {
    frontend: {
      server: { certFile, keyFile, clientCaFiles: [clientCaFile], requireClientAuth: requireClient },
      client,
    },
    ...(!internal && { systemWorker: { certFile, keyFile, client } }),
  };
}

/** Returns the dynamic configuration of a server, as its file holds it. */
export function settings(more: ServerOptions['settings'] = {}): object {
  const values = {
    'limit.maxIDLength': 255,
    'frontend.WorkflowPauseEnabled': true,
    'matching.enableFairness': true,
    ...more,
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [{ value, constraints: {} }]]));
}
