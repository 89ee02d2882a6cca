import { GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import { checkedKey, type FoundObject, type ListedObject, type ObjectFacts, type Objects } from '../objects.ts';
import { removeAny, removeVersion, requireConditionalRemoval, unfinishedUploads } from './removal.ts';
import { writeOntoItself } from './renew.ts';
import { isConflict, isMissing, nullIf, type Requests, statusOf } from './requests.ts';
import { type Condition, isCompleted, isLarge, putObject, type Upload, uploadParts, versionOf } from './upload.ts';

/** An object that was changed within this time is not renewed again; retention leaves what is younger than a day. */
const renewAfterMs = 3_600_000;

export interface Bucket {
  readonly client: S3Client;
  readonly requests: Requests;
  readonly bucket: string;
  /** The folder of the objects within the bucket; empty for the whole bucket. */
  readonly prefix: string;
  /** The number of objects in one page of a listing. Default: as many as the store gives. */
  readonly pageSize?: number;
}

/**
 * Keeps objects in a bucket. Versions are ETags. Every write is conditional, so that a request whose answer was lost can be sent
 * again: if the condition is not met then, the object is compared with what was sent.
 */
export function createBucket(options: Bucket): Objects {
  const { bucket, prefix } = options;
  let proved = false;
  async function removeUnused(key: string, unusedSinceMs: number): Promise<boolean> {
    if (!proved) await requireConditionalRemoval(options, { Bucket: bucket, Key: `${rootOf(options)}hosts/` });
    proved = true;
    const object = objectOf(options, key);
    // Each try looks again. An earlier one may have removed the object, and another process may have written it again: it has the
    // same version then, which follows from the bytes, but it is young.
    return options.requests.run(`remove ${key}`, async () => {
      const found = await headOnce(options, object);
      if (found === null) return true;
      return found.changedAtMs < unusedSinceMs && removeVersion(options.client, object, found.version);
    });
  }
  return {
    location: `s3://${[bucket, ...(prefix === '' ? [] : [prefix])].join('/')}`,
    get: (key) => read(options, key),
    peek: (key, most) => peek(options, key, most),
    async stat(key) {
      const found = await head(options, key);
      return found === null ? null : { size: found.size, changedAtMs: found.changedAtMs };
    },
    async putOnce(key, bytes) {
      // A large object that exists need not be sent. A small one is sent at once: most are new.
      if (isLarge(bytes) && (await renew(options, key))) return;
      while ((await write(options, { key, bytes, condition: { IfNoneMatch: '*' } })) === null) {
        if (await renew(options, key)) return;
      }
    },
    replace: (key, bytes, version) =>
      write(options, { key, bytes, condition: version === null ? { IfNoneMatch: '*' } : { IfMatch: version } }),
    renew: (key) => renew(options, key),
    list: (folder) => listPages(options, checkedKey(folder)),
    remove: (key, unusedSinceMs) =>
      unusedSinceMs === undefined ? removeAny(options, objectOf(options, key)) : removeUnused(key, unusedSinceMs),
    async *leftovers(folders) {
      for (const folder of folders) {
        yield* unfinishedUploads(options, { Bucket: bucket, Key: `${rootOf(options)}${checkedKey(folder)}/` });
      }
    },
  };
}

const rootOf = ({ prefix }: Bucket): string => (prefix === '' ? '' : `${prefix}/`);

const objectOf = (options: Bucket, key: string): Upload => ({
  Bucket: options.bucket,
  Key: `${rootOf(options)}${checkedKey(key)}`,
});

async function read(options: Bucket, key: string): Promise<FoundObject | null> {
  const object = objectOf(options, key);
  return options.requests.run(`read ${key}`, () => readOnce(options, object));
}

function readOnce({ client }: Bucket, object: Upload): Promise<FoundObject | null> {
  return nullIf(isMissing, async () => {
    const { Body, ETag } = await client.send(new GetObjectCommand(object));
    return { bytes: Buffer.from((await Body?.transformToByteArray()) ?? []), version: versionOf(ETag) };
  });
}

interface Head extends ObjectFacts {
  readonly version: string;
}

async function head(options: Bucket, key: string): Promise<Head | null> {
  const object = objectOf(options, key);
  return options.requests.run(`look for ${key}`, () => headOnce(options, object));
}

function headOnce({ client }: Bucket, object: Upload): Promise<Head | null> {
  return nullIf(isMissing, async () => {
    const { ContentLength = 0, LastModified, ETag } = await client.send(new HeadObjectCommand(object));
    return { size: ContentLength, changedAtMs: LastModified?.getTime() ?? 0, version: versionOf(ETag) };
  });
}

interface Write {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly condition: Condition;
}

/** Writes an object on a condition; returns its version, or null if the condition is not met. */
async function write(options: Bucket, { key, bytes, condition }: Write): Promise<string | null> {
  const { client, requests } = options;
  const object = objectOf(options, key);
  const settle = (send: () => Promise<string>): Promise<string | null> =>
    requests.run(`write ${key}`, (triesBefore) =>
      send().catch(async (error: unknown) => {
        if (!isConflict(error) && !isMissing(error)) throw error;
        if (triesBefore === 0 && !isCompleted(error)) return null;
        // An earlier try may have had its effect although its answer was lost.
        const found = await readOnce(options, object);
        return found !== null && Buffer.compare(found.bytes, bytes) === 0 ? found.version : null;
      }),
    );
  if (!isLarge(bytes)) return settle(() => putObject(client, object, bytes, condition));
  const upload = await uploadParts(client, requests, object, bytes);
  const version = await settle(() => upload.complete(condition));
  if (version === null) await upload.abort();
  return version;
}

/** Renews an object unless that was done lately. Returns whether it exists. */
async function renew(options: Bucket, key: string): Promise<boolean> {
  const found = await head(options, key);
  if (found === null) return false;
  if (Date.now() - found.changedAtMs < renewAfterMs) return true;
  const changed = (error: unknown): boolean => isConflict(error) || isMissing(error);
  await options.requests.run(`renew ${key}`, () =>
    nullIf(changed, () => writeOntoItself(options.client, objectOf(options, key), found)),
  );
  // If it has changed, another process has renewed or removed it. A server that checks the condition of a removal before it
  // removes, and not in one step, may have removed it now.
  return (await head(options, key)) !== null;
}

/** Reads the beginning of an object. A range of an empty object cannot be satisfied. */
async function peek(options: Bucket, key: string, most: number): Promise<Uint8Array | null> {
  const request = new GetObjectCommand({ ...objectOf(options, key), Range: `bytes=0-${most - 1}` });
  return options.requests.run(`read ${key}`, () =>
    nullIf(isMissing, async () => {
      const answer = await nullIf(isEmpty, () => options.client.send(request));
      return (await answer?.Body?.transformToByteArray()) ?? new Uint8Array();
    }),
  );
}

const isEmpty = (error: unknown): boolean => statusOf(error) === 416;

async function* listPages(options: Bucket, folder: string): AsyncIterable<ListedObject> {
  const { client, requests, bucket, pageSize: MaxKeys } = options;
  const root = rootOf(options);
  const Prefix = `${root}${folder}/`;
  let ContinuationToken: string | undefined;
  do {
    const request = { Bucket: bucket, Prefix, MaxKeys, ContinuationToken };
    const page = await requests.run(`list ${Prefix}`, () => client.send(new ListObjectsV2Command(request)));
    for (const { Key = '', Size = 0, LastModified } of page.Contents ?? []) {
      yield { key: Key.slice(root.length), size: Size, changedAtMs: LastModified?.getTime() ?? 0 };
    }
    ContinuationToken = page.IsTruncated === true ? page.NextContinuationToken : undefined;
  } while (ContinuationToken !== undefined);
}
