#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { keepCompiledCode } from '../process/cache.mjs';
import { onNpmShellEnd } from '../process/npm-shell.mjs';
import { say } from '../process/report.mjs';
import { isCurrentNode, minimumNode } from './node-runtime.mjs';
import { runInCheckout } from './run.mjs';

const checkoutCli = new URL('../../workers/cli.ts', import.meta.url);
const installedCli = new URL('../../dist/workers/cli.js', import.meta.url);

if (existsSync(checkoutCli)) {
  // Hints name the command as it was called: by the path of this file, or by a link to it.
  if (process.argv[1].endsWith('.mjs'))
    process.env.TEMPER_CALLED_AS ??= `node ${relative(process.cwd(), process.argv[1])}`;
  await runInCheckout(['temper', ...process.argv.slice(2)]);
} else if (isCurrentNode()) {
  onNpmShellEnd(() => process.kill(process.pid, 'SIGTERM'));
  keepCompiledCode(process.env);
  await import(installedCli.href);
} else {
  say(
    `expected Node ${minimumNode} or newer, got ${process.versions.node}; install one from https://nodejs.org and start again`,
  );
  process.exitCode = 1;
}
