/** The address of a stack's objects in a bucket: `s3://bucket/prefix`. */
export interface S3Address {
  readonly bucket: string;
  /** The folder of the objects within the bucket; empty for the whole bucket. */
  readonly prefix: string;
}

/** A bucket of a store that speaks the S3 API. Credentials are found as every AWS tool finds them. */
export interface S3Place extends S3Address {
  readonly kind: 's3';
  /** Null: AWS, or what AWS_ENDPOINT_URL names. */
  readonly endpoint: string | null;
  /** Null: as the profile says. */
  readonly region: string | null;
  /** Whether the bucket is part of the path instead of the host name. */
  readonly pathStyle: boolean;
}

/** The form of an address, for a message. */
export const s3AddressForm =
  's3://bucket or s3://bucket/prefix, with 3 to 63 of a-z, 0-9, "." and "-" as the bucket, and folders of letters, digits, ".", "_" and "-"';

/** Reads `s3://bucket/prefix`; null for any other text. */
export function parseS3Address(text: string): S3Address | null {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*?))?\/?$/.exec(text) ?? [];
  const isFolder = prefix === '' || prefix.split('/').every((part) => /^[a-zA-Z0-9_-][a-zA-Z0-9._-]*$/.test(part));
  return bucket === undefined || !isFolder ? null : { bucket, prefix };
}
