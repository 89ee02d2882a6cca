import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 20;
/** The pause after a look, as a multiple of the time that the look took: what is waited for needs the machine more. */
const pauses = 4;
/** The pause as a part of the time that was waited: a wait becomes that much longer at most, and a long one has few looks. */
const partOfWait = 1 / 20;
const longestMs = 1_000;

/**
 * Polls until there is a result (anything but `false` and `null`) and returns it; throws after `limitMs`. The time for which this
 * process stands still between two looks does not count, and a look always follows it.
 */
export async function until<Seen>(
  look: () => Seen | Promise<Seen>,
  limitMs = 180_000,
): Promise<Exclude<Seen, false | null>> {
  for (let usedMs = 0; ; ) {
    const began = performance.now();
    const seen = await look();
    if (seen !== false && seen !== null) return seen as Exclude<Seen, false | null>;
    if (usedMs > limitMs) throw new Error(`expected within ${limitMs} ms: ${look}`);
    const tookMs = performance.now() - began;
    const pauseMs = Math.min(Math.max(pollMs, pauses * tookMs, partOfWait * usedMs), longestMs);
    await sleep(pauseMs);
    usedMs += tookMs + pauseMs;
  }
}
