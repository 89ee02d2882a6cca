import type { Outcome } from '../contracts/outcome.ts';

const outcomesKept = 32;
const fewest = 16;

/** Watches the last outcomes: when nearly all of them are `infra`, going on finds out nothing. */
export class InfraWatch {
  readonly #share: number;
  readonly #recent: Outcome[];

  constructor(pauseAtShare: number, recent: readonly Outcome[]) {
    this.#share = pauseAtShare;
    this.#recent = [...recent];
  }

  get recent(): readonly Outcome[] {
    return this.#recent;
  }

  see(outcome: Outcome): void {
    this.#recent.push(outcome);
    this.#recent.splice(0, Math.max(0, this.#recent.length - outcomesKept));
  }

  /** After a resume the past must not pause at once again. */
  forget(): void {
    this.#recent.length = 0;
  }

  /** Why to pause; null while there is no reason. `what`: of what these are the outcomes. */
  reasonToPause(what: string): string | null {
    const infra = this.#recent.filter((outcome) => outcome === 'infra').length;
    if (this.#recent.length < fewest || infra / this.#recent.length < this.#share) return null;
    return `${infra} of the last ${this.#recent.length} ${what} ended as infra; look at one of them, mend the cause, then resume`;
  }
}
