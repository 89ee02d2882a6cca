import { Worker } from 'node:worker_threads';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Judgement, judgeLog, type LogCase, unread } from './judge-log.ts';

/** Read within milliseconds: starting a thread would take longer. */
const smallLogBytes = 512 * 1024;
/** The longest log takes half a second, or one of JUnit, PHPUnit or bats up to a second, whatever it holds: beyond this the host is at fault. */
const timeoutMs = 60_000;
/** A log that takes more was made to. */
const heapMb = 1024;

/** Judges a log of any length without holding up the process for long: a host has others to heartbeat for. */
export async function judgeAside(log: Buffer, by: LogCase): Promise<Judgement> {
  if (log.byteLength <= smallLogBytes) return judgeLog(log.toString('utf8'), by);
  // Beside this file, as source or compiled.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const thread = new Worker(new URL(`./judge-thread.${extension}`, import.meta.url), {
    name: 'judge',
    workerData: { log, by },
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Judgement>((resolve, reject) => {
      timer = setTimeout(() => reject(stalled()), timeoutMs);
      thread.once('message', resolve);
      thread.once('error', (error) => (isOverHeap(error) ? resolve(tooMuch(by)) : reject(error)));
    });
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}

const isOverHeap = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';

const tooMuch = (by: LogCase): Judgement => unread(by, `the log can't be read within ${heapMb} MB of memory`);

const stalled = (): TemperFailure =>
  new TemperFailure(
    'EvaluationTimedOut',
    `the log of the tests was not read within ${timeoutMs / 1000} s: the host is overloaded; the evaluation is retried`,
  );
