import type { Sandbox } from '../sandbox/sandbox.ts';

/** What is kept of a log: its head and its tail, where reasons and summaries are. */
const headBytes = 256 * 1024;
const tailBytes = 256 * 1024;
const partBytes = 4 * 1024 * 1024;

export interface WholeLog {
  readonly bytes: Buffer;
  /** The process wrote more than a sandbox keeps. */
  readonly truncated: boolean;
}

/** All that a sandbox kept of the output of a detached process that has ended. */
export async function readWholeLog(sandbox: Sandbox, key: string): Promise<WholeLog> {
  const parts: Buffer[] = [];
  for (let fromByte = 0; ; ) {
    const { bytes, nextByte, truncated } = await sandbox.readLog(key, { fromByte, maxBytes: partBytes });
    parts.push(bytes);
    if (bytes.length < partBytes) return { bytes: Buffer.concat(parts), truncated };
    fromByte = nextByte;
  }
}

/** A log as it goes into the store: cut in the middle when it is long. */
export function cutInTheMiddle(log: Buffer): Buffer {
  const skipped = log.length - headBytes - tailBytes;
  if (skipped <= 0) return log;
  const gap = Buffer.from(`\n… ${skipped} bytes left out …\n`);
  return Buffer.concat([log.subarray(0, headBytes), gap, log.subarray(log.length - tailBytes)]);
}
