import type { BlobRef } from '../../workflows/contracts/blob.ts';

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
