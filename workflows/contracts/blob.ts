/** A reference to bytes in the store: what crosses the workflow boundary instead of the bytes. */
export interface BlobRef {
  /** sha256 of the bytes, lower-case hex. */
  readonly digest: string;
  /** Length in bytes. */
  readonly size: number;
  readonly mediaType: string;
}
