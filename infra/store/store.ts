import type { BlobRef } from '../../workflows/contracts/blob.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sha256 } from './files.ts';
import type { Objects } from './objects.ts';

/** A content-addressed store of write-once bytes. Throws TemperFailure StoreUnavailable, DiskFull or BlobMissing. */
export interface Store {
  /** Stores the bytes, or renews the blob that holds them: its time of last use is then now. */
  put(bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  putJson(value: unknown): Promise<BlobRef>;
  /** Reads the bytes and checks them against the digest. */
  get(digest: string): Promise<Uint8Array>;
  getJson(digest: string): Promise<unknown>;
  has(digest: string): Promise<boolean>;
  /** Describes an existing blob, for an address that names only a digest, and renews it. */
  describe(digest: string, mediaType: string): Promise<BlobRef>;
}

/** The folder of the blobs. */
const blobFolder = 'store';

/** Creates a store of blobs: `store/<first two hex digits>/<sha256>`. */
export function createStore(objects: Objects): Store {
  async function put(bytes: Uint8Array, mediaType: string): Promise<BlobRef> {
    const digest = sha256(bytes);
    await objects.putOnce(blobKey(digest), bytes);
    return { digest, size: bytes.byteLength, mediaType };
  }

  const missing = (digest: string): TemperFailure =>
    new TemperFailure(
      'BlobMissing',
      `the store ${objects.location} has no blob ${digest}; it may be in another stack's store`,
    );

  async function get(digest: string): Promise<Uint8Array> {
    const key = blobKey(digest);
    const found = await objects.get(key);
    if (found === null) throw missing(digest);
    if (sha256(found.bytes) !== digest) {
      throw new TemperFailure(
        'BlobMissing',
        `the blob ${digest} has other content; remove ${key} from ${objects.location}`,
      );
    }
    return found.bytes;
  }

  return {
    put,
    get,
    putJson: (value) => put(new TextEncoder().encode(JSON.stringify(value)), 'application/json'),
    getJson: async (digest) => JSON.parse(new TextDecoder().decode(await get(digest))),
    has: async (digest) => (await objects.stat(blobKey(digest))) !== null,
    async describe(digest, mediaType) {
      const size = (await get(digest)).byteLength;
      // Retention may have removed it meanwhile.
      if (!(await objects.renew(blobKey(digest)))) throw missing(digest);
      return { digest, size, mediaType };
    },
  };
}

/** Returns the key of a blob. Throws TemperFailure BlobMissing if this is no digest. */
export function blobKey(digest: string): string {
  if (/^[0-9a-f]{64}$/.test(digest)) return `${blobFolder}/${digest.slice(0, 2)}/${digest}`;
  throw new TemperFailure('BlobMissing', `expected a sha256 in lower-case hex, got ${JSON.stringify(digest)}`);
}
