import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { say } from '../process/report.mjs';
import { ensureDependencies } from './dependencies.mjs';
import { ensureNode } from './node-runtime.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** What each command runs, with the arguments that come before the user's. */
const COMMANDS = {
  demo: ['workers/cli.ts', 'demo'],
  temper: ['workers/cli.ts'],
  test: ['test/runner/test.ts'],
};

/**
 * Prepares the checkout and runs a command in it: a current Node, the npm packages, then the command. Silent and quick
 * when there is nothing to prepare. A path to a script stands for itself. Must run on old versions of Node.
 */
export async function runInCheckout(words) {
  const prepared = await prepare(words).catch(failPlainly);
  if (prepared === undefined) return;
  const { node, args } = prepared;
  if (node !== process.execPath) return await runUnder(node, args);
  process.argv = [process.execPath, ...args];
  await import(pathToFileURL(args[0]).href);
}

async function prepare([command, ...rest]) {
  const known = command !== undefined && Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  const [script, ...before] = known ?? (command?.endsWith('.ts') ? [command] : []);
  if (script === undefined) {
    throw new Error(`expected ${Object.keys(COMMANDS).join(', ')} or a script, got ${command ?? 'nothing'}`);
  }
  const node = await ensureNode();
  await ensureDependencies(ROOT);
  return { node, args: [join(ROOT, script), ...before, ...rest] };
}

/**
 * Continues under another Node. The child has a process group of its own: a Ctrl-C comes to us alone, and it gets each
 * signal once.
 */
async function runUnder(node, args) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  const child = spawn(node, args, { stdio: 'inherit', detached: true, env });
  const handlers = FORWARDED.map((name) => [name, () => child.kill(name)]);
  for (const [name, handler] of handlers) process.on(name, handler);
  process.exitCode = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
  for (const [name, handler] of handlers) process.off(name, handler);
}

/** Ends with the error's text alone: it says what to do, and a stack trace would hide that. */
function failPlainly(error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await runInCheckout(process.argv.slice(2));
