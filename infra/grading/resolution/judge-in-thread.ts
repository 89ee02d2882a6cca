import { Worker } from 'node:worker_threads';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Judgement, judgeLog, type LogCase, unreadable } from './judge-log.ts';

/** A log of up to this size is judged within milliseconds: starting a thread would take longer. */
const smallLogBytes = 512 * 1024;
/**
 * The time limit of a judgement.
 *
 * The longest log takes half a second, and one of JUnit, PHPUnit or bats up to a second, whatever it contains. Above this
 * limit the host is overloaded.
 */
const timeoutMs = 60_000;
/** The memory limit of the thread. No honest log needs as much. */
const heapMb = 1024;

/** Judges a log of any length. A long log is judged in a thread, so that the process can send its heartbeats meanwhile. */
export async function judgeInThread(log: Buffer, by: LogCase): Promise<Judgement> {
  if (log.byteLength <= smallLogBytes) return judgeLog(log.toString('utf8'), by);
  // The thread's file lies beside this one, as source or compiled.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const thread = new Worker(new URL(`./judge-worker.${extension}`, import.meta.url), {
    name: 'judge',
    workerData: { log, by },
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Judgement>((resolve, reject) => {
      timer = setTimeout(() => reject(timedOut()), timeoutMs);
      thread.once('message', resolve);
      thread.once('error', (error) => {
        if (isOutOfMemory(error)) resolve(unreadable(by, `the log cannot be read within ${heapMb} MB of memory`));
        else reject(error);
      });
    });
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';

const timedOut = (): TemperFailure =>
  new TemperFailure(
    'EvaluationTimedOut',
    `the log of the tests was not read within ${timeoutMs / 1000} s, so the host may be overloaded; the evaluation is retried`,
  );
