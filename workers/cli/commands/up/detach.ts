import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitReason } from '../../../../infra/process/exit-reason.ts';
import type { Config } from '../../../../infra/settings/config.ts';
import { AlreadyUp } from '../../../up/claim-home.ts';
import { isUp, readUpFile, type UpFile } from '../../../up/up-file.ts';
import { note } from '../../text/output.ts';
import { createLogFile, type LogFile } from '../logs/log-file.ts';

const pollMs = 200;
/** Prefix of the message with which `temper` fails; the lines after it belong to it. */
const failurePrefix = 'temper: ';

/**
 * Starts `temper up` as a process of its own session, which outlives the terminal, and returns once its stack does its work.
 * Throws the message of a stack that does not start. An abort stops it.
 */
export async function startDetached(
  config: Config,
  { signal, further }: { readonly signal: AbortSignal; readonly further: readonly string[] },
): Promise<UpFile> {
  const known = await readUpFile(config.paths.up);
  if (known !== null && isUp(known) && known.state !== 'stopping') {
    throw new AlreadyUp(config.home, known.supervisor.pid);
  }
  await mkdir(config.paths.logs, { recursive: true });
  const path = join(config.paths.logs, 'up.log');
  const log = createLogFile(path);
  await log.keepLast(0);
  const child = await launch(config, path, further);
  const exited = exitReason(child);
  try {
    return await untilRunning(config, { child, exited, log, path }, signal);
  } catch (error) {
    child.kill('SIGTERM');
    await exited;
    throw error;
  } finally {
    await log.close();
    child.unref();
  }
}

async function launch(config: Config, path: string, further: readonly string[]): Promise<ChildProcess> {
  const program = join(import.meta.dirname, `../../../cli${extname(import.meta.filename)}`);
  const log = await open(path, 'a');
  try {
    const child = spawn(process.execPath, [program, 'up', '--home', config.home, ...further], {
      env: config.env,
      stdio: ['ignore', log.fd, log.fd],
      detached: true,
    });
    await once(child, 'spawn');
    return child;
  } finally {
    await log.close();
  }
}

interface Starting {
  readonly child: ChildProcess;
  readonly exited: Promise<string>;
  readonly log: LogFile;
  readonly path: string;
}

/** Shows the progress that the stack logs until it runs. */
async function untilRunning(
  config: Config,
  { child, exited, log, path }: Starting,
  signal: AbortSignal,
): Promise<UpFile> {
  const failure: string[] = [];
  const showProgress = (lines: readonly string[]): void => {
    for (const line of lines) {
      if (failure.length > 0 || line.startsWith(failurePrefix)) failure.push(line);
      else if (line !== '') note(line);
    }
  };
  for (;;) {
    const end = await Promise.race([exited, sleep(pollMs, null, { signal })]);
    // The lines come first: once the stack runs, they are the summary that the caller prints itself.
    const lines = await log.readLines();
    const up = await readUpFile(config.paths.up);
    if (end === null && up?.state === 'running' && up.supervisor.pid === child.pid && isUp(up)) return up;
    showProgress(lines);
    if (end === null) continue;
    const cause = failure.length === 0 ? end : failure.join('\n').slice(failurePrefix.length);
    throw new Error(`${cause}\nthe stack did not start; its log is ${path}`);
  }
}
