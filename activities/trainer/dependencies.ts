import type { Engine } from '../../infra/engine/engine.ts';
import type { Objects } from '../../infra/store/objects.ts';
import type { Store } from '../../infra/store/store.ts';
import type { TrainerJournal } from '../../infra/trainer/journal.ts';
import type { Datum, Trainer } from '../../infra/trainer/trainer.ts';

/** A run's own part of what a trainer worker works with: nothing of it is shared with other runs. */
export interface RunDependencies {
  /** The run's client of its trainer, with a session of its own. */
  readonly trainer: Trainer;
  /** The engines of the run's pool, as they serve its policy. */
  readonly engines: readonly Engine[];
  readonly publish: 'reload' | 'lora';
}

/** The dependencies of a trainer worker's activities. */
export interface TrainerDependencies {
  /** Returns a run's own part. Throws InvalidInput if its pool is unknown. */
  ofRun(run: { readonly runKey: string; readonly pool?: string | undefined }): Promise<RunDependencies>;
  /** Returns the keys of the runs that are open or whose policy a sweep evaluates. */
  usedPolicies(): Promise<ReadonlySet<string>>;
  readonly store: Store;
  /** The objects with the runs' journals. */
  readonly journals: Objects;
  /** The largest number of tokens of one forward_backward, padding included; more data is sent in several requests. */
  readonly requestTokens: number;
  /** Returns the versions that evaluations in progress are pinned to. */
  pinnedVersions(): Promise<readonly number[]>;
  /** Returns examples for the warm-up: demonstrations of a task set, rendered as the gateway renders them, or recorded traces. */
  demonstrations(request: DemonstrationRequest): Promise<readonly Datum[]>;
}

export interface DemonstrationRequest {
  readonly tasks: string;
  readonly agent: string;
  readonly seed: number;
  /** The warm-up step that the examples are for. */
  readonly step: number;
  readonly count: number;
  readonly rightShare: number;
  /** The digests of recorded traces; null for demonstrations. */
  readonly traces: readonly string[] | null;
}

/**
 * The context of one activity of a run: the worker's dependencies, the run's part, its journal, and the signal that
 * ends the activity.
 */
export interface TrainerContext extends Omit<TrainerDependencies, 'ofRun'>, RunDependencies {
  readonly journal: TrainerJournal;
  readonly signal: AbortSignal;
}
