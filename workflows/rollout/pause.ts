import { condition } from '@temporalio/workflow';

/** The brake of a rollout: takes hold before the next stage, never within one. */
export interface Pause {
  /** Null when it is not paused. */
  readonly because: string | null;
  pause(reason: string): void;
  resume(): void;
  untilResumed(): Promise<void>;
}

export function createPause(onChange: () => void): Pause {
  let because: string | null = null;
  return {
    get because() {
      return because;
    },
    pause(reason) {
      because = reason;
      onChange();
    },
    resume() {
      because = null;
      onChange();
    },
    untilResumed: () => condition(() => because === null),
  };
}
