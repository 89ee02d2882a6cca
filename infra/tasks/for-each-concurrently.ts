import PQueue from 'p-queue';

/**
 * Works on items, a limited number at once, until there are no more or the signal aborts. The first error, of the work
 * or of the items, aborts the work on the other items; it is thrown once they have ended.
 */
export async function forEachConcurrently<Item>(
  items: AsyncIterable<Item>,
  concurrency: number,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const queue = new PQueue({ concurrency });
  const failed = new AbortController();
  const ending = AbortSignal.any([signal, failed.signal]);
  const start = async (item: Item): Promise<void> => {
    if (ending.aborted) return;
    await work(item, ending).catch((error: unknown) => failed.abort(error));
  };
  try {
    for await (const item of items) {
      if (ending.aborted) break;
      void queue.add(() => start(item));
      // Read the next item only when the work on this one has begun: a set may have any number of items.
      await queue.onSizeLessThan(1);
    }
  } catch (error) {
    failed.abort(error);
  }
  await queue.onIdle();
  if (failed.signal.aborted) throw failed.signal.reason;
}
