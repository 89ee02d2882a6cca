const headBytes = 2 ** 20;
const tailBytes = 2 ** 18;

/** Keeps the beginning and the end of an output that may have any length. */
export class BoundedLog {
  #head = '';
  #tail = '';
  #leftOut = false;

  push(text: string): void {
    const room = Math.max(0, headBytes - this.#head.length);
    this.#head += text.slice(0, room);
    this.#tail += text.slice(room);
    if (this.#tail.length <= 2 * tailBytes) return;
    this.#tail = this.#tail.slice(-tailBytes);
    this.#leftOut = true;
  }

  /** Its last lines, on one. */
  lastWords(length: number): string {
    const text = (this.#tail === '' ? this.#head : this.#tail).trim();
    return text.slice(-length).replaceAll(/\s*\n\s*/g, ' | ');
  }

  bytes(): Buffer {
    return Buffer.from(`${this.#head}${this.#leftOut ? '\n… output left out …\n' : ''}${this.#tail}`);
  }
}
