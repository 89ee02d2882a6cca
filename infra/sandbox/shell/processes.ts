import { randomUUID } from 'node:crypto';
import { killedCode } from '../exit-status.ts';
import { SandboxFailure } from '../failure.ts';
import { startVariables } from '../image-environment.ts';
import type { StoredSpec } from '../labels.ts';
import {
  type LogPart,
  type LogRange,
  logBytes,
  type ProcessStatus,
  type PutFiles,
  type StartRequest,
  type StartResult,
} from '../sandbox.ts';
import { homeOf } from './accounts.ts';
import { launch } from './launch.ts';
import { imageVariables } from './own-programs.ts';
import { parseStatus, startRecorder, withTimeout } from './recorder.ts';
import type { SandboxReports } from './reports.ts';
import * as scripts from './scripts.ts';
import type { Script, ScriptResult, Shell } from './shell.ts';
import { unread, untilUnkilled, wasKilled } from './unread.ts';

export const blockBytes = 512;
const megabyte = 2 ** 20;
/** Duration of one watch inside the sandbox. It bounds what a caller that died leaves running there. */
const watchSec = 30;
/** The time for which a recorder's stream is believed before the files are looked at: it might have broken without a word. */
const silentMs = 5 * 60_000;
const never = new AbortController().signal;

/** The environment entry that marks every process of a key, even one whose parents have ended. */
export const markOf = (key: string): string => `TEMPER_PROCESS=${key}`;

/**
 * The detached processes of one sandbox. The recorder's own stream reports the end at once; without that stream, the keeper's
 * files are polled.
 */
export interface Processes {
  /** Starts a process. Files of its own account travel with the command; `putFiles` writes the others. */
  start(request: StartRequest, putFiles: (files: PutFiles) => Promise<void>, signal: AbortSignal): Promise<StartResult>;
  status(key: string, signal: AbortSignal): Promise<ProcessStatus>;
  /** Waits for any status but `running`; resolves with `running` after a while, with a stream after `mostMs`. */
  watch(key: string, signal: AbortSignal, mostMs?: number): Promise<ProcessStatus>;
  /** Returns the time since the start of a process, in whole seconds. */
  ageMs(key: string, signal: AbortSignal): Promise<number>;
  readLog(key: string, range: LogRange, signal: AbortSignal): Promise<LogPart>;
}

export function createProcesses(shell: Shell, spec: StoredSpec, reports: SandboxReports): Processes {
  /** Runs a script that only reads. */
  const read = (script: Omit<Script, 'role'>, signal: AbortSignal): Promise<ScriptResult> =>
    untilUnkilled(() => shell.run({ role: 'keeper', ...script }, signal), wasKilled);

  const status = async (key: string, signal: AbortSignal): Promise<ProcessStatus> =>
    statusOf(shell, await read({ text: scripts.status, args: [key] }, signal));

  const start: Processes['start'] = async (request, putFiles, signal) => {
    signal.throwIfAborted();
    const { key, account, argv, env, files = [] } = request;
    const token = randomUUID();
    const numbers = [logBytes / blockBytes, spec.pids, shell.quietTasks ?? 0];
    const recorder = startRecorder(shell, [key, token, ...numbers.map(String)]);
    if ((await recorder.claimed) === 'already-started') return 'already-started';
    reports.add(key, recorder);
    const sent = files.find(({ owner }) => owner === account);
    for (const one of files) if (one !== sent) await putFiles(one);
    const limits = [String(spec.pids), String((spec.diskMb * megabyte) / blockBytes)];
    const [mark = '', value = ''] = markOf(key).split('=');
    const variables = { HOME: homeOf(account, spec), LANG: 'C.UTF-8', ...env, [mark]: value };
    const script: Script = {
      role: account,
      text: scripts.detached,
      args: [sent?.at ?? '', key, token, ...limits, request.cwd ?? spec.workdir, ...argv],
      env: startVariables(variables, request, imageVariables),
    };
    await launch(shell, script, sent, recorder.live);
    return 'started';
  };

  const watch: Processes['watch'] = async (key, signal, mostMs = silentMs) => {
    const live = reports.ended(key);
    const ended = live && (await withTimeout(live, mostMs, signal));
    if (ended) return ended;
    // Polling inside the sandbox starts processes every second: a thousand agents at work would pay for it with a core.
    if (reports.ended(key) !== undefined) return status(key, signal);
    return statusOf(shell, await read({ text: scripts.watchStatus, args: [key, String(watchSec)] }, signal));
  };

  const readLog = async (key: string, { fromByte, maxBytes }: LogRange, signal: AbortSignal): Promise<LogPart> => {
    const sent = await reports.log(key, signal);
    if (sent !== undefined) {
      const bytes = sent.subarray(fromByte, fromByte + maxBytes);
      return { bytes, nextByte: fromByte + bytes.length, truncated: false };
    }
    const args = [key, String(fromByte + 1), String(maxBytes)];
    const script = { text: scripts.readLog, args, maxOutputBytes: Math.max(maxBytes, 64) };
    const { exitCode, stdout, stderr } = await read(script, signal);
    if (exitCode !== 0) throw await unread(shell, `the log of ${key}`, { exitCode, stderr });
    const truncated = Number.parseInt(String(stderr), 10) >= logBytes;
    return { bytes: stdout, nextByte: fromByte + stdout.length, truncated };
  };

  const ageMs = async (key: string, signal: AbortSignal): Promise<number> => {
    const { stdout } = await read({ text: scripts.age, args: [key] }, signal);
    return Math.max(0, Number.parseInt(String(stdout), 10) || 0) * 1_000;
  };

  return { start, status, watch, ageMs, readLog };
}

/** Throws if the kernel ended the recorder or the reader for memory: no account can end these, but one may have filled the memory. */
async function statusOf(shell: Shell, { exitCode, stdout, stderr }: ScriptResult): Promise<ProcessStatus> {
  // A sandbox that was stopped has its programs killed, too, and says so when it is used again.
  if (exitCode === killedCode) await shell.run({ role: 'keeper', text: ':', args: [] }, never);
  if (exitCode === killedCode || String(stdout).trim() === scripts.killedForMemory) {
    const text = `the result of a process in sandbox ${shell.name} is lost, since the memory of the sandbox was full and the kernel ended the program that records or reads it`;
    throw new SandboxFailure('SandboxLost', text, { loss: 'out-of-memory' });
  }
  if (exitCode === 0) return parseStatus(String(stdout));
  const output = String(stderr).trim().slice(0, 300);
  throw new SandboxFailure('Internal', `could not read the status of a process: exit code ${exitCode}: ${output}`);
}
