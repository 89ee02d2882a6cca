import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compiledDirectory, keepCompiledCode } from '../process/cache.mjs';
import { onNpmShellEnd } from '../process/npm-shell.mjs';
import { say } from '../process/report.mjs';
import { ensureDependencies } from './dependencies.mjs';
import { ensureNode } from './node-runtime.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** The script of each command, with the arguments that precede the user's. */
const commands = {
  demo: ['workers/cli.ts', 'demo'],
  temper: ['workers/cli.ts'],
  test: ['test/runner/test.ts'],
};

/**
 * Prepares a current Node and the npm packages, then runs a command of the checkout, or a script by its path. Silent and quick if
 * there is nothing to prepare. Must run on old versions of Node.
 */
export async function runInCheckout(words) {
  onNpmShellEnd(() => process.kill(process.pid, 'SIGTERM'));
  const prepared = await prepare(words).catch(failPlainly);
  if (prepared === undefined) return;
  const { node, args } = prepared;
  if (node !== process.execPath) return await runUnder(node, args);
  process.argv = [process.execPath, ...args];
  keepCompiledCode(process.env);
  await import(pathToFileURL(args[0]).href);
}

async function prepare([command, ...rest]) {
  const known = command !== undefined && Object.hasOwn(commands, command) ? commands[command] : undefined;
  const [script, ...before] = known ?? (command?.endsWith('.ts') ? [command] : []);
  if (script === undefined) {
    throw new Error(`expected ${Object.keys(commands).join(', ')} or a script, got ${command ?? 'nothing'}`);
  }
  const node = await ensureNode();
  await ensureDependencies(root);
  return { node, args: [join(root, script), ...before, ...rest] };
}

/**
 * Continues under another Node. The child has its own process group, so that a Ctrl-C reaches only this process and the child
 * receives each signal once.
 */
async function runUnder(node, args) {
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH ?? ''}`;
  const env = { NODE_COMPILE_CACHE: compiledDirectory(process.env), ...process.env, PATH };
  const child = spawn(node, args, { stdio: 'inherit', detached: true, env });
  const handlers = forwarded.map((name) => [name, () => child.kill(name)]);
  for (const [name, handler] of handlers) process.on(name, handler);
  process.exitCode = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
  for (const [name, handler] of handlers) process.off(name, handler);
}

/** Prints only the error's message, which says what to do; a stack trace would hide that. */
function failPlainly(error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await runInCheckout(process.argv.slice(2));
