#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { keepCompiledCode } from '../process/cache.mjs';
import { onNpmShellEnd } from '../process/npm-shell.mjs';
import { say } from '../process/report.mjs';
import { isCurrentNode, minimumNode } from './node-runtime.mjs';
import { runInCheckout } from './run.mjs';

const checkoutCli = new URL('../../workers/cli.ts', import.meta.url);
const installedCli = new URL('../../dist/workers/cli.js', import.meta.url);

if (existsSync(checkoutCli)) {
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
