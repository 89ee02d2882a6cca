import { S3Client } from '@aws-sdk/client-s3';
import type { Objects } from '../objects.ts';
import { createBucket } from './bucket.ts';
import type { S3Place } from './place.ts';
import { createRequests } from './requests.ts';

const connectMs = 3_000;
const silentMs = 30_000;
/** The requests at a time, each with a socket: the client counts a wait for one as a connection that is not made. */
const sockets = 64;

export interface OpenBucketOptions {
  /** The number of objects in one page of a listing. Default: as many as the store gives. */
  readonly pageSize?: number;
  /**
   * The time in which a connection must carry something, in milliseconds, also within an answer. A large object may take longer
   * as a whole.
   */
  readonly silentMs?: number;
}

/** Opens a bucket. No request is made. */
export function openBucket(place: S3Place, options: OpenBucketOptions = {}): Objects {
  const { bucket, prefix, endpoint, region, pathStyle } = place;
  const client = new S3Client({
    forcePathStyle: pathStyle,
    ...(endpoint !== null && { endpoint }),
    ...(region !== null && { region }),
    // The SDK would give up after some hundred milliseconds; see createRequests.
    maxAttempts: 1,
    // Many stores refuse the SDK's additional checksums. Blobs have a digest of their own.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectMs,
      socketTimeout: options.silentMs ?? silentMs,
      httpAgent: { keepAlive: true, maxSockets: sockets },
      httpsAgent: { keepAlive: true, maxSockets: sockets },
    },
  });
  const { pageSize } = options;
  const requests = createRequests(`s3://${bucket}`, sockets);
  return createBucket({ client, requests, bucket, prefix, ...(pageSize !== undefined && { pageSize }) });
}
