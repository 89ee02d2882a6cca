import type { AgentEnd, Provisioned } from '../../activities/interfaces/host.ts';
import type { BlobRef } from '../contracts/blob.ts';
import type { Diff } from '../contracts/diff.ts';
import type { Flag } from '../contracts/flags.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import type { RolloutInput, StepResult } from '../contracts/rollout.ts';
import type { Snapshot } from '../contracts/snapshot.ts';
import type { ResolvedTask } from '../contracts/task.ts';
import type { TraceSummary } from '../contracts/trace.ts';
import type { GradedInPlace } from './grade-in-place.ts';
import type { HostLoss } from './host-loss.ts';
import type { CostMeter } from './meter.ts';
import type { Progress } from './progress.ts';
import type { TimeLimits } from './time-limits.ts';

/** The end of an agent. */
export interface AgentsEnd extends Pick<AgentEnd, 'stop' | 'exitCode' | 'log' | 'network' | 'waitedMs'> {
  /** The longest time for which its clock stood still, if its sandbox lived too short for that of the input. */
  readonly waitingMs?: number;
}

/** The work of an agent: enough to evaluate it anywhere. */
export interface Produced {
  readonly end: AgentsEnd;
  readonly diff: Diff;
  /** All that it changed in its sandbox, if the tests get that. */
  readonly snapshot?: Snapshot;
  readonly trace: TraceSummary | null;
  /** The answer that the agent, or the task's reference solution, has given. */
  readonly answer?: BlobRef;
  /** The result of the tests, if they ran in the agent's own sandbox, or after the last step of a task that has several. */
  readonly graded?: GradedInPlace;
  /** The steps that ran, of a task that has several. */
  readonly steps?: readonly StepResult[];
  /** The flags of all these steps, one for each trick. */
  readonly stepFlags?: readonly Flag[];
  /** Whether the host that placed the rollout limits the creation of sandboxes. */
  readonly limitsCreations: boolean;
}

/** One epoch of a rollout with all that its stages need. */
export interface EpochContext {
  readonly input: RolloutInput;
  readonly resolved: ResolvedTask;
  readonly limits: TimeLimits;
  readonly epoch: RolloutEpoch;
  readonly progress: Progress;
  readonly loss: HostLoss;
  readonly meter: CostMeter;
}

/** The sandbox of an epoch, and the context length of the model. */
export type Prepared = Provisioned & { readonly contextLength: number | null };
