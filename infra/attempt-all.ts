import { errorMessage } from '../workflows/contracts/error-message.ts';
import { TemperFailure } from '../workflows/contracts/failures.ts';

/** Does the work for each item in turn. A failure does not stop the rest; all failures are thrown together at the end. */
export async function attemptAll<Item>(
  items: Iterable<Item>,
  expected: string,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      failures.push(error);
    }
  }
  throwTogether(expected, failures);
}

/**
 * Throws one error that holds all failures, as a `TemperFailure` of the first failure's type if that is one. Does nothing if
 * there are none.
 */
export function throwTogether(expected: string, failures: readonly unknown[]): void {
  const [first] = failures;
  if (failures.length === 0) return;
  const text = `expected ${expected}, got ${failures.length} failures; the first: ${errorMessage(first)}`;
  const all = new AggregateError(failures, text);
  throw first instanceof TemperFailure ? new TemperFailure(first.type, text, { cause: all }) : all;
}
