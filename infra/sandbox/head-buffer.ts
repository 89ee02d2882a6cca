/** Keeps the first bytes of an output and drops the rest, so that a flood neither fills memory nor blocks its writer. */
export class HeadBuffer {
  readonly #chunks: Buffer[] = [];
  readonly #maxBytes: number;
  #kept = 0;
  truncated = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    const room = this.#maxBytes - this.#kept;
    if (chunk.length > room) this.truncated = true;
    if (room <= 0) return;
    this.#chunks.push(chunk.subarray(0, room));
    this.#kept += Math.min(room, chunk.length);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
