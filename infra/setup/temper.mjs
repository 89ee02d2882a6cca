#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { say } from '../process/report.mjs';
import { isCurrentNode, MINIMUM_NODE } from './node-runtime.mjs';
import { runInCheckout } from './run.mjs';

const CHECKOUT_CLI = new URL('../../workers/cli.ts', import.meta.url);
const INSTALLED_CLI = new URL('../../dist/workers/cli.js', import.meta.url);

if (existsSync(CHECKOUT_CLI)) {
  await runInCheckout(['temper', ...process.argv.slice(2)]);
} else if (isCurrentNode()) {
  await import(INSTALLED_CLI.href);
} else {
  say(
    `expected Node ${MINIMUM_NODE} or newer, got ${process.versions.node}; install one from https://nodejs.org and start again`,
  );
  process.exitCode = 1;
}
