import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Argument, type Command } from 'commander';
import type { Config } from '../../../infra/settings/config.ts';
import { partKinds } from '../../up/part.ts';
import { configOf, type HomeOption, stackCommand, wholeNumber } from '../stack/command.ts';
import { Unsuccessful, UsageError } from '../text/errors.ts';
import { print } from '../text/output.ts';
import { createLogFile, type LogFile } from './logs/log-file.ts';

interface LogsOptions extends HomeOption {
  readonly follow?: true;
  readonly lines: number;
}

const pollMs = 250;
const maxLines = 1_000_000;

export function logsCommand(): Command {
  const names = partKinds.join(', ');
  return stackCommand(
    'logs',
    "Prints the last lines of the logs of a stack's processes, each line with the name of its process, or those of one process alone. Works while no stack runs.",
    'temper logs host -f',
  )
    .addArgument(
      new Argument(
        '[process]',
        `name of a process: ${names}, gateway-1 and so on, or up for the supervisor in the background`,
      ),
    )
    .option('-f, --follow', 'print new lines as well, until Ctrl-C, also those of processes that start later')
    .option('-n, --lines <n>', 'number of last lines of each log', wholeNumber(0, maxLines), 50)
    .action(logs);
}

async function logs(name: string | undefined, options: LogsOptions): Promise<void> {
  const config = configOf(options);
  const found = await logNames(config);
  if (name !== undefined && !found.includes(name)) throw unknownLog(config, name, found);
  if (name === undefined && found.length === 0 && !options.follow) {
    throw new Unsuccessful(`there are no logs in ${config.paths.logs}: no stack has run on ${config.home}`);
  }
  const files = new Map<string, LogFile>();

  async function openAll(lines: number | 'all'): Promise<void> {
    for (const one of name === undefined ? await logNames(config) : [name]) {
      if (files.has(one)) continue;
      const file = createLogFile(join(config.paths.logs, `${one}.log`));
      files.set(one, file);
      if (lines !== 'all') await file.keepLast(lines);
    }
  }

  async function printNew(): Promise<void> {
    const width = Math.max(0, ...[...files.keys()].map((one) => one.length));
    for (const [one, file] of files) {
      for (const line of await file.readLines()) print(name === undefined ? `${one.padEnd(width)} | ${line}` : line);
    }
  }

  await openAll(options.lines);
  await printNew();
  // There is nothing to clean up: Ctrl-C ends the process.
  while (options.follow) {
    await sleep(pollMs);
    await openAll('all');
    await printNew();
  }
  for (const file of files.values()) await file.close();
}

/** Lists the processes that have a log on this home. */
async function logNames({ paths }: Config): Promise<readonly string[]> {
  const files = await readdir(paths.logs).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return files.flatMap((file) => /^(.+)\.log$/.exec(file)?.[1] ?? []).sort();
}

function unknownLog({ paths }: Config, name: string, found: readonly string[]): UsageError {
  const known = found.length === 0 ? 'there is none; no stack has run on this home' : `expected ${found.join(', ')}`;
  return new UsageError(`no log of ${name} in ${paths.logs}: ${known}`);
}
