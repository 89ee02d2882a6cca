import type { ProcessStatus } from '../sandbox.ts';
import { type Epilogue, type Recorder, withTimeout } from './recorder.ts';

/** Time that a recorder gets to send its epilogue once its process has ended. */
const epilogueMs = 2_000;

/** The reports of the recorders of one sandbox to this process. A report never changes, so it is kept. */
export interface SandboxReports {
  /** Notes that a command starts which may leave processes behind. */
  noteCommand(): void;
  /** Follows the recorder of a process that was just started. */
  add(key: string, recorder: Recorder): void;
  /** The end of a process, if its recorder reports to this process; undefined if the stream broke. */
  ended(key: string): Promise<ProcessStatus | undefined> | undefined;
  /** The whole log of an ended process, if its recorder sent it. */
  log(key: string, signal: AbortSignal): Promise<Buffer | undefined>;
  /** Whether the newest command has ended and the kernel counted nothing else in the sandbox. */
  isQuiet(): Promise<boolean>;
}

/** The reports by sandbox, shared by all its handles. A new sandbox of the same name has another id. */
export interface Reports {
  of(id: string): SandboxReports;
  forget(id: string): void;
}

interface Process extends Pick<Recorder, 'ended'> {
  readonly epilogue: Promise<Epilogue | undefined>;
  /** The number of the sandbox's commands up to this one. */
  readonly number: number;
  over: boolean;
}

export function createReports(): Reports {
  const all = new Map<string, SandboxReports>();
  return {
    of: (id) => {
      const found = all.get(id) ?? createSandboxReports();
      all.set(id, found);
      return found;
    },
    forget: (id) => {
      all.delete(id);
    },
  };
}

function createSandboxReports(): SandboxReports {
  const processes = new Map<string, Process>();
  let commands = 0;
  return {
    noteCommand: () => {
      commands += 1;
    },
    add: (key, { ended, epilogue }) => {
      commands += 1;
      const process: Process = { ended, epilogue, number: commands, over: false };
      processes.set(key, process);
      void ended.then((status) => {
        process.over = true;
        // A stream that broke has nothing more to report.
        if (status === undefined) processes.delete(key);
      });
    },
    ended: (key) => processes.get(key)?.ended,
    log: async (key, signal) => {
      const process = processes.get(key);
      return process?.over ? (await withTimeout(process.epilogue, epilogueMs, signal))?.log : undefined;
    },
    isQuiet: async () => {
      const newest = [...processes.values()].find(({ number }) => number === commands);
      if (!newest?.over) return false;
      const epilogue = await withTimeout(newest.epilogue, epilogueMs, new AbortController().signal);
      return epilogue?.quiet === true && newest.number === commands;
    },
  };
}
