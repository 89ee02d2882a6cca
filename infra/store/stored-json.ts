import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** Parses the JSON of an object. Throws TemperFailure BlobMissing with its place if it is cut off or was changed. */
export function storedJson(place: string, bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new TemperFailure(
      'BlobMissing',
      `${place}: expected JSON, and its ${bytes.byteLength} bytes do not parse: ${errorMessage(cause)}; restore it from a backup`,
      { cause },
    );
  }
}
