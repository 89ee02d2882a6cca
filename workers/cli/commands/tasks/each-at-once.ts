/**
 * Works on so many items at once until there are none left or the signal aborts. What the work throws is nothing that it
 * expected: it ends the work on the other items too, which is waited for, and is thrown then.
 */
export async function eachAtOnce<Item>(
  items: AsyncIterable<Item>,
  atOnce: number,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const queue = items[Symbol.asyncIterator]();
  const failed = new AbortController();
  const ending = AbortSignal.any([signal, failed.signal]);
  const worker = async (): Promise<void> => {
    while (!ending.aborted) {
      const { value, done } = await queue.next();
      if (done) return;
      if (!ending.aborted) await work(value, ending);
    }
  };
  const workers = Array.from({ length: atOnce }, () => worker().catch((error: unknown) => failed.abort(error)));
  await Promise.all(workers);
  if (failed.signal.aborted) throw failed.signal.reason;
}
