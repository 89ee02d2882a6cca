import type { BlobRef } from './blob.ts';
import type { Diff } from './diff.ts';
import type { RolloutEpoch } from './ids.ts';
import type { SandboxChoice, SandboxKind } from './sandbox-kinds.ts';
import type { Snapshot } from './snapshot.ts';
import type { Task } from './task.ts';
import type { Verdict } from './verdict.ts';

/** A verdict, with the seconds that the activity ran which gave it, failed attempts included: waits are no part of them. */
export interface Evaluated extends Verdict {
  readonly seconds: number;
}

/** The evaluation of an agent's work in its own sandbox, as a workflow asks the sandbox's host for it. */
export interface EvaluationInPlace extends Omit<EvaluationRequest, 'reuseVerdict' | 'snapshot'> {
  readonly kind: SandboxKind;
  /** The fencing token under which this host has adopted the sandbox; absent if it made it. */
  readonly adoptedAs?: string;
}

/** The evaluation of a diff by the task's tests, as a workflow asks a host for it. */
export interface EvaluationRequest {
  readonly epoch: RolloutEpoch;
  /** The workflow id of the run; empty for a rollout outside of a run. */
  readonly run: string;
  readonly task: Task;
  readonly sandbox: SandboxChoice;
  readonly diff: Diff;
  /** The answer that the agent recorded; absent without one. */
  readonly answer?: BlobRef;
  /** All that the agent changed in its sandbox, for tests that get that and not the diff alone. */
  readonly snapshot?: Snapshot;
  /** The limit of the tests alone, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether to return a cached verdict if there is one, and to cache this one. */
  readonly reuseVerdict?: true;
}
