import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import pLimit from 'p-limit';
import { nameOf, type Requests } from './requests.ts';

/** A larger object is uploaded in parts of this size, each of which is retried by itself. */
export const partBytes = 8 * 2 ** 20;
const concurrentParts = 4;

/** The state of the object that an upload requires: none, or that version. */
export type Condition = { readonly IfNoneMatch: '*' } | { readonly IfMatch: string };

export interface Upload {
  readonly Bucket: string;
  readonly Key: string;
}

export const isLarge = (bytes: Uint8Array): boolean => bytes.byteLength > partBytes;

/** Uploads an object as a whole, and returns its version. Throws the store's error, also for a condition that is not met. */
export async function putObject(
  client: S3Client,
  upload: Upload,
  bytes: Uint8Array,
  condition: Condition,
): Promise<string> {
  const { ETag } = await client.send(new PutObjectCommand({ ...upload, ...condition, Body: bytes }));
  return versionOf(ETag);
}

/**
 * Uploads the parts of a large object. The returned function gives it its name; it may be called again. `abort` removes the
 * parts, otherwise retention does so after a day.
 */
export async function uploadParts(
  client: S3Client,
  requests: Requests,
  upload: Upload,
  bytes: Uint8Array,
): Promise<{ complete(condition: Condition): Promise<string>; abort(): Promise<void> }> {
  const { UploadId } = await requests.run(`upload ${upload.Key}`, () =>
    client.send(new CreateMultipartUploadCommand(upload)),
  );
  const started = { ...upload, UploadId };
  const abort = async (): Promise<void> => {
    await client.send(new AbortMultipartUploadCommand(started)).catch(() => undefined);
  };
  const limit = pLimit(concurrentParts);
  const count = Math.ceil(bytes.byteLength / partBytes);
  const sendPart = async (index: number): Promise<CompletedPart> => {
    const PartNumber = index + 1;
    const Body = bytes.subarray(index * partBytes, (index + 1) * partBytes);
    const { ETag } = await requests.run(`upload part ${PartNumber} of ${upload.Key}`, () =>
      client.send(new UploadPartCommand({ ...started, PartNumber, Body })),
    );
    return { PartNumber, ETag };
  };
  try {
    const Parts = await Promise.all(Array.from({ length: count }, (_, index) => limit(() => sendPart(index))));
    return {
      abort,
      async complete(condition) {
        const command = new CompleteMultipartUploadCommand({ ...started, ...condition, MultipartUpload: { Parts } });
        return versionOf((await client.send(command)).ETag);
      },
    };
  } catch (error) {
    limit.clearQueue();
    await abort();
    throw error;
  }
}

/** Whether an earlier try has completed the upload already. */
export const isCompleted = (error: unknown): boolean => nameOf(error) === 'NoSuchUpload';

export function versionOf(tag: string | undefined): string {
  if (tag !== undefined) return tag;
  throw new Error('expected an ETag in the answer of the store, got none');
}
