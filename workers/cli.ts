#!/usr/bin/env node
import { runCli } from './cli/run-cli.ts';

/** Time for pending output. After it the program exits, even if a library has left a handle open. */
const flushMs = 2_000;

// A reader such as `head` may close the pipe early; that is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
}

process.exitCode = await runCli(process.argv.slice(2));
setTimeout(() => process.exit(), flushMs).unref();
