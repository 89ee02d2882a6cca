/** Keeps the first bytes of an output and drops the rest, so that a flood neither fills memory nor blocks its writer. */
export interface HeadBuffer {
  push(chunk: Buffer): void;
  bytes(): Buffer;
  /** Whether bytes were dropped. */
  truncated(): boolean;
}

export function createHeadBuffer(maxBytes: number): HeadBuffer {
  const chunks: Buffer[] = [];
  let keptBytes = 0;
  let truncated = false;
  return {
    push(chunk) {
      const freeBytes = maxBytes - keptBytes;
      if (chunk.length > freeBytes) truncated = true;
      if (freeBytes <= 0) return;
      chunks.push(chunk.subarray(0, freeBytes));
      keptBytes += Math.min(freeBytes, chunk.length);
    },
    bytes: () => Buffer.concat(chunks),
    truncated: () => truncated,
  };
}

/** Reads a stream to its end, and keeps its first bytes. */
export async function readHead(source: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer> {
  const head = createHeadBuffer(maxBytes);
  for await (const chunk of source) if (chunk instanceof Uint8Array) head.push(Buffer.from(chunk));
  return head.bytes();
}
