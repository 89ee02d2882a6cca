import { execFile } from 'node:child_process';
import { access, constants, mkdir, statfs } from 'node:fs/promises';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { promisify } from 'node:util';
import type { Config } from '../../../../infra/config.ts';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';
import { type Check, missing, ok, type RunChecks, warn } from './checks.ts';

const run = promisify(execFile);
const gigabyte = 2 ** 30;
const leastDisk = 2;
const leastMemory = 2;

/** Checks this machine: Node, processors, memory, disk, and the tools that sandboxes use. */
export const checkMachine: RunChecks = async function* (config) {
  yield ok('node', `${process.versions.node} at ${process.execPath}`);
  yield ok(
    'processors',
    `${availableParallelism()}; runs up to ${config.capacity} agents and ${config.evaluations} evaluations at once (TEMPER_CAPACITY, TEMPER_EVALUATIONS)`,
  );
  yield memory();
  yield* home(config);
  yield await tool('git', ['--version'], 'install git; local sandboxes and the capture of diffs need it');
};

function memory(): Check {
  const [free, total] = [freemem() / gigabyte, totalmem() / gigabyte];
  const found = `${free.toFixed(1)} of ${total.toFixed(1)} GB free`;
  if (free >= leastMemory) return ok('memory', found);
  return warn('memory', found, `a stack needs about ${leastMemory} GB; lower TEMPER_CAPACITY or free some memory`);
}

async function* home({ home: directory }: Config): AsyncIterable<Check> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK);
    yield ok('home', directory);
  } catch (error) {
    yield missing('home', errorMessage(error), 'choose a writable directory with --home or TEMPER_HOME');
    return;
  }
  const { bavail, bsize } = await statfs(directory);
  const free = (bavail * bsize) / gigabyte;
  const found = `${free.toFixed(1)} GB free at ${directory}`;
  if (free >= leastDisk) yield ok('disk', found);
  else yield warn('disk', found, `runs keep traces and checkpoints; free at least ${leastDisk} GB`);
}

async function tool(name: string, args: readonly string[], remedy: string): Promise<Check> {
  try {
    const { stdout } = await run(name, args, { timeout: 10_000 });
    return ok(name, stdout.trim());
  } catch (error) {
    return missing(name, `cannot be run: ${errorMessage(error)}`, remedy);
  }
}
