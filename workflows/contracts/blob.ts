import { z } from 'zod';
import { integer, text } from './input.ts';

/** A reference to bytes in the store: what crosses the workflow boundary instead of the bytes themselves. */
export const blobRef = z.strictObject({
  digest: z
    .string()
    .regex(/^[0-9a-f]{64}$/, { error: 'expected a sha256 in lower-case hex' })
    .describe('The sha256 of the bytes, 64 lower-case hexadecimal digits.'),
  size: integer(0, Number.MAX_SAFE_INTEGER, 'bytes').describe('The length in bytes.'),
  mediaType: text('a media type').describe('The media type, for example `application/json`.'),
});
export type BlobRef = Readonly<z.output<typeof blobRef>>;
