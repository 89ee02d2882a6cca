import type { Sandbox } from './sandbox.ts';

const partBytes = 4 * 1024 * 1024;

export interface WholeLog {
  readonly bytes: Buffer;
  /** Whether the process wrote more than a sandbox keeps. */
  readonly truncated: boolean;
}

/** Reads all that a sandbox kept of the output of a detached process that has ended. */
export async function readWholeLog(sandbox: Sandbox, key: string): Promise<WholeLog> {
  const parts: Buffer[] = [];
  for (let fromByte = 0; ; ) {
    const { bytes, nextByte, truncated } = await sandbox.readLog(key, { fromByte, maxBytes: partBytes });
    parts.push(bytes);
    if (bytes.length < partBytes) return { bytes: Buffer.concat(parts), truncated };
    fromByte = nextByte;
  }
}

/** Reads the log of a detached process as the store keeps it. */
export async function readLog(sandbox: Sandbox, key: string): Promise<Buffer> {
  return cutMiddle((await readWholeLog(sandbox, key)).bytes);
}

const headBytes = 256 * 1024;
const tailBytes = 256 * 1024;

/** Returns a log as the store keeps it: a long one without its middle, since reasons and summaries stand at the ends. */
export function cutMiddle(log: Buffer): Buffer {
  const skipped = log.length - headBytes - tailBytes;
  if (skipped <= 0) return log;
  const gap = Buffer.from(`\n… ${skipped} bytes left out …\n`);
  return Buffer.concat([log.subarray(0, headBytes), gap, log.subarray(log.length - tailBytes)]);
}

/** Removes secrets that processes may have printed. Latin-1 keeps every byte. */
export function withoutSecrets(log: Buffer, secrets: readonly string[]): Buffer {
  const shown = secrets.filter((secret) => log.includes(secret));
  if (shown.length === 0) return log;
  const text = shown.reduce((left, secret) => left.replaceAll(secret, '(secret)'), log.toString('latin1'));
  return Buffer.from(text, 'latin1');
}
