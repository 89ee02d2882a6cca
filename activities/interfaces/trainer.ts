import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { Training, WarmUp } from '../../workflows/contracts/run.ts';

/** The activities of the trainer worker. */
export interface TrainerActivities {
  /** Gets or creates the run's model at version 0, after its warm-up. */
  prepareTrainer(input: PrepareTrainer): Promise<{ readonly metrics: Readonly<Record<string, number>> }>;
  update(input: UpdatePolicy): Promise<PolicyUpdate>;
  /** Forgets the update of a step that failed, so that the weights stay those before it. Fails if the update was made. */
  skipUpdate(input: SkipUpdate): Promise<void>;
  /** Publishes a version to every engine replica, and proves that each serves it. */
  syncWeights(input: SyncWeights): Promise<{ readonly replicas: number; readonly maxLogprobGap: number }>;
  /** Publishes the version to the replicas that came back without it, and proves it; returns their URLs. */
  restoreWeights(input: SyncWeights): Promise<{ readonly restored: readonly string[] }>;
}

/** The pool of the run's engines. */
interface OfPool {
  readonly pool: string;
}

export interface PrepareTrainer extends OfPool {
  readonly run: string;
  readonly runKey: string;
  readonly seed: number;
  readonly tasks: string;
  readonly agent: string;
  readonly training: Training;
  readonly warmUp: WarmUp | null;
}

/** The heartbeat details of `prepareTrainer` during the warm-up. */
export interface WarmUpProgress {
  readonly warmUpStep: number;
  readonly of: number;
}

export interface UpdatePolicy extends OfPool {
  readonly runKey: string;
  readonly step: number;
  /** The number of this update in its run, from 1, on which the learning rate depends. */
  readonly update: number;
  /** The number of updates that the run makes at most: those made, and one for each step from this one on. */
  readonly mostUpdates: number;
  /** The last earlier step that made an update, as the run knows it; 0 if there is none. */
  readonly lastUpdate: number;
  readonly batch: BlobRef;
  readonly advantages: BlobRef;
  readonly training: Training;
}

export interface SkipUpdate {
  readonly runKey: string;
  readonly step: number;
}

export interface PolicyUpdate {
  /** The trainer's checkpoint of the new version. */
  readonly name: string;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SyncWeights extends OfPool {
  readonly runKey: string;
  readonly version: number;
  /** The last step up to the version that made an update, as the run knows it; 0 if there is none. */
  readonly lastUpdate: number;
  readonly training: Training;
}
