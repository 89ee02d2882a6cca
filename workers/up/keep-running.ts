import { setTimeout as sleep } from 'node:timers/promises';
import type { Part, PartStatus, RunningPart } from './part.ts';

export interface Backoff {
  readonly firstMs: number;
  readonly capMs: number;
  /** Who ran this long starts again with the first delay. */
  readonly steadyMs: number;
}

export const defaultBackoff: Backoff = { firstMs: 200, capMs: 10_000, steadyMs: 30_000 };

export interface Keeper {
  status(): PartStatus;
  stop(): Promise<void>;
}

/**
 * Starts a part and starts it again whenever it dies, until `stop`.
 * The first start must succeed: what can't run at all is a wrong setting, which no repetition cures.
 */
export async function keepRunning(
  part: Part,
  onChange: (status: PartStatus) => void,
  signal: AbortSignal,
  backoff: Backoff = defaultBackoff,
): Promise<Keeper> {
  return new PartKeeper(part, onChange, backoff, await part.start(signal));
}

class PartKeeper implements Keeper {
  readonly #part: Part;
  readonly #onChange: (status: PartStatus) => void;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  readonly #loop: Promise<void>;
  #running: RunningPart | null;
  #status: PartStatus;

  constructor(part: Part, onChange: (status: PartStatus) => void, backoff: Backoff, first: RunningPart) {
    this.#part = part;
    this.#onChange = onChange;
    this.#backoff = backoff;
    this.#running = first;
    const { name, logFile } = part;
    this.#status = { name, state: 'running', pid: first.pid, restarts: 0, lastExit: null, logFile };
    this.#loop = this.#keep();
  }

  status(): PartStatus {
    return this.#status;
  }

  async stop(): Promise<void> {
    this.#change({ state: 'stopping' });
    this.#stopping.abort();
    await this.#loop;
    this.#change({ state: 'stopped', pid: null });
  }

  async #keep(): Promise<void> {
    const { firstMs, capMs } = this.#backoff;
    let quickDeaths = 0;
    while (!this.#stopping.signal.aborted) {
      if (this.#running === null) await this.#startAgain();
      const steady = this.#running !== null && (await this.#untilDeath(this.#running));
      if (this.#stopping.signal.aborted) break;
      quickDeaths = steady ? 1 : quickDeaths + 1;
      this.#change({ state: 'waiting', pid: null, restarts: this.#status.restarts + 1 });
      await pause(Math.min(capMs, firstMs * 2 ** (quickDeaths - 1)), this.#stopping.signal);
    }
    await this.#running?.stop();
  }

  /** True when it ran long enough to count as steady. Returns at once when the part is to be stopped. */
  async #untilDeath(running: RunningPart): Promise<boolean> {
    const since = performance.now();
    this.#change({ state: 'running', pid: running.pid });
    const exit = await Promise.race([running.exited, aborted(this.#stopping.signal)]);
    if (exit === null) return true;
    this.#running = null;
    this.#change({ lastExit: exit });
    return performance.now() - since >= this.#backoff.steadyMs;
  }

  async #startAgain(): Promise<void> {
    this.#change({ state: 'starting' });
    try {
      this.#running = await this.#part.start(this.#stopping.signal);
    } catch (error) {
      this.#change({ lastExit: error instanceof Error ? error.message : String(error) });
    }
  }

  #change(changes: Partial<PartStatus>): void {
    this.#status = { ...this.#status, ...changes };
    this.#onChange(this.#status);
  }
}

/** A pause that ends early, without an error, when it is no longer wanted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
