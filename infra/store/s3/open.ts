import { S3Client } from '@aws-sdk/client-s3';
import type { Objects } from '../objects.ts';
import { createBucket } from './bucket.ts';
import type { S3Place } from './place.ts';
import { createRequests } from './requests.ts';

const connectMs = 3_000;
const answerMs = 30_000;
const sockets = 64;

/** Opens a bucket. No request is made. */
export function openBucket(place: S3Place, options: { readonly pageSize?: number } = {}): Objects {
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
      requestTimeout: answerMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: sockets },
      httpsAgent: { keepAlive: true, maxSockets: sockets },
    },
  });
  return createBucket({ client, requests: createRequests(`s3://${bucket}`), bucket, prefix, ...options });
}
