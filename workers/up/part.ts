/**
 * A process of the stack, as its supervisor starts it: temper's own (spawned-part.ts) or Temporal's (temporal-part.ts).
 */
export interface Part {
  readonly name: PartName;
  readonly logFile: string;
  /** Resolves once the process does its work; rejects, after ending the process, when it can't. */
  start(signal: AbortSignal): Promise<RunningPart>;
}

export const partKinds = ['temporal', 'policy', 'gateway', 'control', 'host', 'trainer'] as const;
export type PartKind = (typeof partKinds)[number];

/** A part's kind is its name, except that several gateways are numbered: `gateway`, `gateway-1`, … */
export type PartName = PartKind | `gateway-${number}`;

export function kindOf(name: PartName): PartKind {
  return partKinds.find((kind) => kind === name) ?? 'gateway';
}

export interface RunningPart {
  readonly pid: number;
  /** Resolves when the process has ended, to the reason: `exit code 1`, `signal SIGKILL`. */
  readonly exited: Promise<string>;
  /** Asks the process to finish, and kills it when that takes too long. */
  stop(): Promise<void>;
}

export const partStates = ['starting', 'running', 'waiting', 'stopping', 'stopped'] as const;

export interface PartStatus {
  readonly name: PartName;
  /** `waiting`: the process has ended and is restarted after a delay. */
  readonly state: (typeof partStates)[number];
  readonly pid: number | null;
  /** Times the process ended and was restarted. */
  readonly restarts: number;
  /** Reason for the last exit; null when the process has never ended. */
  readonly lastExit: string | null;
  readonly logFile: string;
}
