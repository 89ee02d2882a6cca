import { parentPort, workerData } from 'node:worker_threads';
import { judgeLog, type LogCase } from './judge-log.ts';

/* The thread of judgeInThread: judges one log and ends. */
const { log, by }: { readonly log: Uint8Array; readonly by: LogCase } = workerData;
parentPort?.postMessage(judgeLog(new TextDecoder().decode(log), by));
