import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import type { Part, PartStatus, RunningPart } from './part.ts';

/** Delays between restarts, which double from `firstMs` up to `capMs`. */
export interface Backoff {
  readonly firstMs: number;
  readonly capMs: number;
  /** Uptime after which the backoff resets. */
  readonly steadyMs: number;
}

const defaultBackoff: Backoff = { firstMs: 200, capMs: 10_000, steadyMs: 30_000 };

/** A part that is restarted whenever its process ends, until `stop`. */
export interface SupervisedPart {
  status(): PartStatus;
  /** Stops the process and resolves once it has ended. */
  stop(): Promise<void>;
}

/**
 * Starts a part and restarts it whenever its process ends.
 *
 * The first start must succeed, and its error is thrown: a part that cannot start at all has an invalid setting, which
 * a retry does not fix. Later failures to start are retried with backoff.
 */
export async function supervisePart(
  part: Part,
  onChange: (status: PartStatus) => void,
  signal: AbortSignal,
  backoff: Backoff = defaultBackoff,
): Promise<SupervisedPart> {
  return new PartSupervisor(part, onChange, backoff, await part.start(signal));
}

class PartSupervisor implements SupervisedPart {
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
    this.#loop = this.#run();
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

  async #run(): Promise<void> {
    const { firstMs, capMs } = this.#backoff;
    let quickExits = 0;
    while (!this.#stopping.signal.aborted) {
      if (this.#running === null) await this.#restart();
      const steady = this.#running !== null && (await this.#untilExit(this.#running));
      if (this.#stopping.signal.aborted) break;
      quickExits = steady ? 1 : quickExits + 1;
      this.#change({ state: 'waiting', pid: null, restarts: this.#status.restarts + 1 });
      await pause(Math.min(capMs, firstMs * 2 ** (quickExits - 1)), this.#stopping.signal);
    }
    await this.#running?.stop();
  }

  /** Waits until the process ends or `stop` is called; returns whether it ran long enough to reset the backoff. */
  async #untilExit(running: RunningPart): Promise<boolean> {
    const since = performance.now();
    this.#change({ state: 'running', pid: running.pid });
    const exited = new AbortController();
    const stopped = aborted(this.#stopping.signal, exited.signal);
    const exit = await Promise.race([running.exited, stopped]).finally(() => exited.abort());
    if (exit === null) return true;
    this.#running = null;
    this.#change({ lastExit: exit });
    return performance.now() - since >= this.#backoff.steadyMs;
  }

  async #restart(): Promise<void> {
    this.#change({ state: 'starting' });
    try {
      this.#running = await this.#part.start(this.#stopping.signal);
    } catch (error) {
      this.#change({ lastExit: errorMessage(error) });
    }
  }

  #change(changes: Partial<PartStatus>): void {
    this.#status = { ...this.#status, ...changes };
    this.#onChange(this.#status);
  }
}

/** Sleeps; an abort ends the sleep early, without an error. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Resolves when a signal is aborted. Never resolves once `over` is. */
function aborted(signal: AbortSignal, over: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true, signal: over });
  });
}
