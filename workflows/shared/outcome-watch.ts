import type { Outcome } from '../contracts/outcome.ts';

const outcomesKept = 32;
/** The smallest number of outcomes that can be a reason to pause. */
const fewest = 16;

/** Watches the last outcomes. When nearly all of them are failures, continuing would waste time and tokens. */
export interface OutcomeWatch {
  /** The last outcomes, newest last. */
  readonly recent: readonly Outcome[];
  add(outcome: Outcome): void;
  /** Forgets the outcomes. After a resume the past must not pause the workflow again at once. */
  forget(): void;
  /** Returns the reason to pause, or null. `what` names the work in it, for example "rollouts". */
  reasonToPause(what: string): string | null;
}

/** Creates a watch. `pauseAt` holds, for each outcome to watch, the share of the last outcomes from which on to pause. */
export function createOutcomeWatch(
  pauseAt: Readonly<Partial<Record<Outcome, number>>>,
  carried: readonly Outcome[],
): OutcomeWatch {
  const recent = [...carried];
  return {
    recent,
    add(outcome) {
      recent.push(outcome);
      recent.splice(0, Math.max(0, recent.length - outcomesKept));
    },
    forget() {
      recent.length = 0;
    },
    reasonToPause(what) {
      if (recent.length < fewest) return null;
      for (const [outcome, share] of Object.entries(pauseAt)) {
        const count = recent.filter((one) => one === outcome).length;
        if (count / recent.length < share) continue;
        return `${count} of the last ${recent.length} ${what} ended as ${outcome}; look at one of them, fix the cause, then resume`;
      }
      return null;
    },
  };
}
