import { setTimeout as sleep } from 'node:timers/promises';

const stepMs = 20;

/** Waits until a condition holds, for a limited time. */
export async function until(condition: () => boolean, mostMs: number): Promise<void> {
  const deadline = performance.now() + mostMs;
  while (!condition() && performance.now() < deadline) {
    await sleep(Math.max(0, Math.min(stepMs, deadline - performance.now())));
  }
}
