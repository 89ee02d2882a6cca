import { constants } from 'node:os';
import type { ProcessEvent } from './wire.ts';

/** The words of envd for the signals that end processes; they are those of Go. */
const signals: Readonly<Record<string, number>> = {
  hangup: constants.signals.SIGHUP,
  interrupt: constants.signals.SIGINT,
  quit: constants.signals.SIGQUIT,
  'illegal instruction': constants.signals.SIGILL,
  'trace/breakpoint trap': constants.signals.SIGTRAP,
  aborted: constants.signals.SIGABRT,
  'bus error': constants.signals.SIGBUS,
  'floating point exception': constants.signals.SIGFPE,
  killed: constants.signals.SIGKILL,
  'user defined signal 1': constants.signals.SIGUSR1,
  'segmentation fault': constants.signals.SIGSEGV,
  'user defined signal 2': constants.signals.SIGUSR2,
  'broken pipe': constants.signals.SIGPIPE,
  'alarm clock': constants.signals.SIGALRM,
  terminated: constants.signals.SIGTERM,
  'CPU time limit exceeded': constants.signals.SIGXCPU,
  'file size limit exceeded': constants.signals.SIGXFSZ,
};

/** Returns the exit code of an ended process as a shell would: 128 + n if signal n ended it. */
export function exitCodeOf({ exitCode, exited, status }: NonNullable<ProcessEvent['end']>): number {
  if (exited || exitCode >= 0) return exitCode;
  const word = /^signal: (.*?)(?: \(core dumped\))?$/.exec(status)?.[1] ?? '';
  return 128 + (signals[word] ?? constants.signals.SIGKILL);
}
