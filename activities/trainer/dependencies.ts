import type { Engine } from '../../infra/engine/engine.ts';
import type { Store } from '../../infra/store/store.ts';
import type { Datum, Trainer } from '../../infra/trainer/trainer.ts';

/** What a trainer worker's activities work with. */
export interface TrainerDependencies {
  readonly trainer: Trainer;
  readonly engines: readonly Engine[];
  readonly store: Store;
  /** Where the journals of runs are kept. */
  readonly journalRoot: string;
  /** Tokens that one forward_backward takes, padding counted; what has more goes in several. */
  readonly requestTokens: number;
  readonly publish: 'reload' | 'lora';
  /** Versions that evaluations in progress are pinned to. */
  pinnedVersions(): Promise<readonly number[]>;
  /** Examples for the warm-up: demonstrations of a task set, rendered as the gateway renders them, or recorded traces. */
  demonstrations(request: DemonstrationRequest): Promise<readonly Datum[]>;
}

export interface DemonstrationRequest {
  readonly tasks: string;
  readonly agent: string;
  readonly seed: number;
  /** The examples of this warm-up step. */
  readonly step: number;
  readonly count: number;
  readonly rightShare: number;
  /** Digests; null: none, demonstrations are made. */
  readonly traces: readonly string[] | null;
}
