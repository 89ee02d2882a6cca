import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 20;
/** The pause after a look, as a multiple of the time that the look took: what is waited for needs the machine more. */
const pauses = 4;
const longestMs = 1_000;

/** Polls until there is a result (anything but `false` and `null`) and returns it; throws after `limitMs`. */
export async function until<Seen>(
  look: () => Seen | Promise<Seen>,
  limitMs = 60_000,
): Promise<Exclude<Seen, false | null>> {
  const end = Date.now() + limitMs;
  for (;;) {
    const began = performance.now();
    const seen = await look();
    const pauseMs = pauses * (performance.now() - began);
    if (seen !== false && seen !== null) return seen as Exclude<Seen, false | null>;
    if (Date.now() > end) throw new Error(`expected within ${limitMs} ms: ${look}`);
    await sleep(Math.min(Math.max(pollMs, pauseMs), longestMs));
  }
}
