import { execFile } from 'node:child_process';
import { access, constants, mkdir, statfs } from 'node:fs/promises';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { promisify } from 'node:util';
import type { Config } from '../../../../infra/config.ts';
import { type Check, type Look, message, missing, ok, warn } from './check.ts';

const run = promisify(execFile);
const gigabyte = 2 ** 30;
const leastDisk = 2;
const leastMemory = 2;

/** What this machine brings: Node, processors, memory, disk, the tools that sandboxes use. */
export const checkMachine: Look = async function* (config) {
  yield ok('node', `${process.versions.node} at ${process.execPath}`);
  yield ok(
    'processors',
    `${availableParallelism()}; ${config.capacity} agents and ${config.evaluations} evaluations at once (TEMPER_CAPACITY, TEMPER_EVALUATIONS)`,
  );
  yield memory();
  yield* home(config);
  yield await tool('git', ['--version'], 'local sandboxes and the capture of diffs need it; install git');
};

function memory(): Check {
  const [free, total] = [freemem() / gigabyte, totalmem() / gigabyte];
  const found = `${free.toFixed(1)} of ${total.toFixed(1)} GB free`;
  if (free >= leastMemory) return ok('memory', found);
  return warn('memory', found, `a stack wants ${leastMemory} GB; lower TEMPER_CAPACITY, or end something else`);
}

async function* home({ home: directory }: Config): AsyncIterable<Check> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK);
    yield ok('home', directory);
  } catch (error) {
    yield missing('home', message(error), 'name a directory that you can write to with --home or TEMPER_HOME');
    return;
  }
  const { bavail, bsize } = await statfs(directory);
  const free = (bavail * bsize) / gigabyte;
  const found = `${free.toFixed(1)} GB free at ${directory}`;
  if (free >= leastDisk) yield ok('disk', found);
  else yield warn('disk', found, `runs keep traces and checkpoints; free some, ${leastDisk} GB are a start`);
}

async function tool(name: string, args: readonly string[], remedy: string): Promise<Check> {
  try {
    const { stdout } = await run(name, args, { timeout: 10_000 });
    return ok(name, stdout.trim());
  } catch (error) {
    return missing(name, `does not run: ${message(error)}`, remedy);
  }
}
