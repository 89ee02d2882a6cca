/**
 * The deepest JSON value that is handed to recursive code: chat templates, schema readers and the sorting of keys walk tool
 * schemas and arguments recursively, in libraries too.
 */
export const maxNesting = 64;

/** Whether a JSON value has at most `depth` levels of arrays and objects. Walks without recursion. */
export function nestsWithin(value: unknown, depth: number = maxNesting): boolean {
  let level: unknown[] = [value];
  for (let remaining = depth; level.length > 0; remaining -= 1) {
    const next = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
    if (remaining < 0) return false;
    level = next;
  }
  return true;
}
