import type { BlobRef } from '../../workflows/contracts/blob.ts';

/** Content-addressed, write-once bytes. Throws TemperFailure StoreUnavailable, DiskFull or BlobMissing. */
export interface Store {
  put(bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  putJson(value: unknown): Promise<BlobRef>;
  /** The bytes, checked against the digest. */
  get(digest: string): Promise<Uint8Array>;
  getJson(digest: string): Promise<unknown>;
  has(digest: string): Promise<boolean>;
  /** Describes a blob that is there; for addresses that name only a digest. */
  describe(digest: string, mediaType: string): Promise<BlobRef>;
}
