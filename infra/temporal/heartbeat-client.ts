import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { TemporalTarget } from './connection.ts';

const path = '/temporal.api.workflowservice.v1.WorkflowService/RecordActivityTaskHeartbeat';

/** Sends encoded heartbeats. It connects with the first of them. */
export interface HeartbeatClient {
  send(request: Uint8Array, timeoutMs: number, onReply: (error: ServiceError | null) => void): void;
}

/** Makes a client of a Temporal server that can do nothing but heartbeat, and loads in a tenth of the SDK's time. */
export function createHeartbeatClient(target: TemporalTarget): HeartbeatClient {
  const { address, apiKey } = target;
  const { channel, options } = channelOf(target);
  const client = new Client(withPort(address), channel, { 'grpc.keepalive_time_ms': 30_000, ...options });
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(target.metadata)) metadata.set(name, value);
  if (apiKey !== undefined) metadata.set('Authorization', `Bearer ${apiKey}`);
  return {
    send(request, timeoutMs, onReply) {
      const bytes = Buffer.from(request);
      const call = { deadline: Date.now() + timeoutMs };
      client.makeUnaryRequest(path, asItIs, asItIs, bytes, metadata, call, (error) => onReply(error));
    },
  };
}

/** Adds the port that the SDK adds. */
const withPort = (address: string): string => (/:\d+$/.test(address) ? address : `${address}:7233`);

const asItIs = (bytes: Buffer): Buffer => bytes;

function channelOf({ tls, apiKey }: TemporalTarget): { channel: ChannelCredentials; options: Record<string, string> } {
  // As in the SDK, an API key turns TLS on unless it is turned off.
  if (tls === false || (tls === null && apiKey === undefined))
    return { channel: credentials.createInsecure(), options: {} };
  const { serverRootCACertificate, clientCertPair, serverNameOverride } = tls === true || tls === null ? {} : tls;
  const bytes = (pem: Uint8Array | undefined) => (pem === undefined ? null : Buffer.from(pem));
  return {
    channel: credentials.createSsl(
      bytes(serverRootCACertificate),
      bytes(clientCertPair?.key),
      bytes(clientCertPair?.crt),
    ),
    options:
      serverNameOverride == null
        ? {}
        : { 'grpc.ssl_target_name_override': serverNameOverride, 'grpc.default_authority': serverNameOverride },
  };
}
