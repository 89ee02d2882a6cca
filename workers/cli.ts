#!/usr/bin/env node
import { runCli } from './cli/run-cli.ts';

/** Whatever a library left open must not keep the program from ending; output that is still on its way has this long. */
const FLUSH_MS = 2_000;

// Whoever read our output has seen enough, as `head` does.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
}

process.exitCode = await runCli(process.argv.slice(2));
setTimeout(() => process.exit(), FLUSH_MS).unref();
