import {
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  type S3Client,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { partBytes, putObject, type Upload } from './upload.ts';

/** A version as it is now, with the object's size. */
export interface CurrentVersion {
  readonly version: string;
  readonly size: number;
}

/** The smallest size that a store takes for a part that is not the last. */
const firstPartBytes = 5 * 2 ** 20;

/**
 * Writes an object onto itself, so that its time of change is now, and its version another one although its bytes are the same:
 * a removal on the condition of the old version then fails. A version says by `-<count>` of how many parts the object was put
 * together, and none for one that was sent as a whole, so that each renewal uses another count than the last. Throws the
 * store's error if the object has changed.
 */
export async function writeOntoItself(client: S3Client, object: Upload, current: CurrentVersion): Promise<void> {
  const { version, size } = current;
  const isOnePart = /-1"?$/.test(version);
  if (!isOnePart) return copyInParts(client, object, current, [null]);
  if (size > partBytes) {
    return copyInParts(client, object, current, [
      `bytes=0-${firstPartBytes - 1}`,
      `bytes=${firstPartBytes}-${size - 1}`,
    ]);
  }
  const { Body } = await client.send(new GetObjectCommand({ ...object, IfMatch: version }));
  const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
  await putObject(client, object, bytes, { IfMatch: version });
}

/** Copies an object onto itself within the store, in parts; null stands for all of it. */
async function copyInParts(
  client: S3Client,
  object: Upload,
  { version }: CurrentVersion,
  ranges: readonly (string | null)[],
): Promise<void> {
  const CopySource = `${object.Bucket}/${object.Key.split('/').map(encodeURIComponent).join('/')}`;
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(object));
  const started = { ...object, UploadId };
  const Parts: CompletedPart[] = [];
  for (const [index, range] of ranges.entries()) {
    const PartNumber = index + 1;
    const source = { CopySource, CopySourceIfMatch: version, ...(range !== null && { CopySourceRange: range }) };
    const { CopyPartResult } = await client.send(new UploadPartCopyCommand({ ...started, ...source, PartNumber }));
    Parts.push({ PartNumber, ETag: CopyPartResult?.ETag });
  }
  const end = { ...started, IfMatch: version, MultipartUpload: { Parts } };
  await client.send(new CompleteMultipartUploadCommand(end));
}
