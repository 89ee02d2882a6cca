import { isMainThread } from 'node:worker_threads';

/**
 * Ends the process that imports it after the milliseconds of the query `ms`, with an error. Node's own limit fails a test that
 * hangs, and leaves its process running for as long as anything keeps it busy.
 */
const limitMs = Number(new URL(import.meta.url).searchParams.get('ms'));

if (isMainThread) {
  setTimeout(() => {
    console.error(`${process.argv[1]}: expected to end within ${limitMs / 1000} s; the process is ended`);
    process.exit(1);
  }, limitMs).unref();
}
