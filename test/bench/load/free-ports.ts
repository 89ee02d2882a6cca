import { freePort, isPortFree } from '../../../infra/temporal/ports.ts';

/** Finds the first of several free ports in a row. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = await freePort();
    const others = Array.from({ length: count - 1 }, (_, index) => isPortFree(first + index + 1));
    if ((await Promise.all(others)).every(Boolean)) return first;
  }
}
