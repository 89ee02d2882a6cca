import { randomBytes } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Leftover } from '../objects.ts';
import { isConflict, isMissing, nullIf, type Requests } from './requests.ts';
import type { Upload } from './upload.ts';

export interface Removal {
  readonly client: S3Client;
  readonly requests: Requests;
}

/** Removes an object, whatever its version. */
export async function removeAny({ client, requests }: Removal, object: Upload): Promise<true> {
  await requests.run(`remove ${object.Key}`, () => client.send(new DeleteObjectCommand(object)));
  return true;
}

/** Removes an object if it still has that version; returns whether it is gone. Makes one request. */
export async function removeVersion(client: S3Client, object: Upload, version: string): Promise<boolean> {
  const removal = new DeleteObjectCommand({ ...object, IfMatch: version });
  const removed = await nullIf(isConflict, async () => {
    await nullIf(isMissing, () => client.send(removal));
    return true;
  });
  return removed !== null;
}

/**
 * Proves that a removal honours its condition: otherwise it could hit an object that another process has just renewed. Throws
 * TemperFailure StoreUnavailable.
 *
 * @param folder A folder for the object of the proof.
 */
export async function requireConditionalRemoval(
  { client, requests }: Removal,
  { Bucket, Key: folder }: Upload,
): Promise<void> {
  const probe = { Bucket, Key: `${folder}probe-${randomBytes(8).toString('hex')}` };
  const otherVersion = '"00000000000000000000000000000000"';
  try {
    await requests.run(`write ${probe.Key}`, () => client.send(new PutObjectCommand({ ...probe, Body: 'probe' })));
    if (await requests.run(`remove ${probe.Key}`, () => removeVersion(client, probe, otherVersion))) {
      throw new TemperFailure(
        'StoreUnavailable',
        `the store s3://${Bucket} ignores the condition If-Match of a removal, so that nothing can be removed safely; use a store that honours it`,
      );
    }
  } finally {
    // The failure of the proof says more than that of this removal.
    await removeAny({ client, requests }, probe).catch(() => undefined);
  }
}

/** Lists the uploads that were begun below a prefix and have not ended. */
export async function* unfinishedUploads(
  { client, requests }: Removal,
  { Bucket, Key: Prefix }: Upload,
): AsyncIterable<Leftover> {
  let KeyMarker: string | undefined;
  let UploadIdMarker: string | undefined;
  do {
    const request = new ListMultipartUploadsCommand({ Bucket, Prefix, KeyMarker, UploadIdMarker });
    const page: ListMultipartUploadsCommandOutput = await requests.run(`list uploads to ${Prefix}`, () =>
      client.send(request),
    );
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      const abort = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
      yield {
        name: `upload ${UploadId} of ${Key}`,
        kind: 'write',
        size: 0,
        changedAtMs: Initiated?.getTime() ?? 0,
        async settle() {
          await requests.run(`abort an upload to ${Key}`, () => nullIf(isMissing, () => client.send(abort)));
          return true;
        },
      };
    }
    KeyMarker = page.IsTruncated === true ? page.NextKeyMarker : undefined;
    UploadIdMarker = page.NextUploadIdMarker;
  } while (KeyMarker !== undefined);
}
