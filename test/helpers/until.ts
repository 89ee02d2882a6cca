import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 20;

/** Polls until there is a result (anything but `false` and `null`) and returns it; throws after `limitMs`. */
export async function until<Seen>(
  look: () => Seen | Promise<Seen>,
  limitMs = 30_000,
): Promise<Exclude<Seen, false | null>> {
  const end = Date.now() + limitMs;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== null) return seen as Exclude<Seen, false | null>;
    if (Date.now() > end) throw new Error(`expected within ${limitMs} ms: ${look}`);
    await sleep(pollMs);
  }
}
