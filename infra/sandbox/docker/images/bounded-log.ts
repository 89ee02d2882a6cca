const headBytes = 2 ** 20;
const tailBytes = 2 ** 18;

/** Keeps the beginning and the end of an output of any length. */
export interface BoundedLog {
  push(text: string): void;
  /** Returns the end of the output, at most `length` characters, on one line. */
  end(length: number): string;
  bytes(): Buffer;
}

export function createBoundedLog(): BoundedLog {
  let head = '';
  let tail = '';
  let truncated = false;
  return {
    push(text) {
      const free = Math.max(0, headBytes - head.length);
      head += text.slice(0, free);
      tail += text.slice(free);
      if (tail.length <= 2 * tailBytes) return;
      tail = tail.slice(-tailBytes);
      truncated = true;
    },
    end: (length) =>
      (tail === '' ? head : tail)
        .trim()
        .slice(-length)
        .replaceAll(/\s*\n\s*/g, ' | '),
    bytes: () => Buffer.from(`${head}${truncated ? '\n… output left out …\n' : ''}${tail}`),
  };
}
