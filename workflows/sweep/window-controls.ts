import type { ChildWorkflowHandle } from '@temporalio/workflow';
import type { Budget } from '../contracts/budget.ts';
import { windowControlSignal } from '../contracts/messages.ts';
import type { SweepWindowControl, SweepWindowRequest } from '../contracts/sweep-state.ts';
import type { sweepWindow } from '../sweep-window.ts';
import type { SweepTally } from './tally.ts';

export type Window = ChildWorkflowHandle<typeof sweepWindow>;
type AtStart = Pick<SweepWindowRequest, 'pausedBecause' | 'resumes' | 'control'>;

/** Tells the windows of a sweep its state at each change. Signals have no order, so the changes have numbers. */
export interface WindowControls {
  /** The number of resumes. A window that paused before it knew of the last one has resumed by now, or is about to. */
  readonly resumes: number;
  /** Returns the state that a window which starts now is given. */
  atStart(): AtStart;
  /** Tells a window that has started what has changed since it was given its state. */
  catchUp(window: Window, number: number, atStart: AtStart): void;
  /** Tells each window that runs that the sweep is paused. */
  pause(): void;
  /** Tells each window that runs that the sweep is resumed, and its part of the budget. */
  resume(): void;
}

export interface WindowControlsOptions {
  readonly tally: Pick<SweepTally, 'pausedBecause'>;
  readonly running: ReadonlyMap<number, Window>;
  /** Returns the part of a window in the budget. */
  partOf(number: number): Budget;
}

export function createWindowControls({ tally, running, partOf }: WindowControlsOptions): WindowControls {
  let resumes = 0;
  let control = 0;

  function tell(window: Window, number: number): void {
    const { pausedBecause } = tally;
    const now: SweepWindowControl = { number: control, pausedBecause, resumes, budget: partOf(number) };
    // A window that has just ended can't be signalled, and need not be.
    void window.signal(windowControlSignal, now).catch(() => undefined);
  }
  function tellEach(): void {
    control += 1;
    for (const [number, window] of running) tell(window, number);
  }

  return {
    get resumes() {
      return resumes;
    },
    atStart: () => ({ pausedBecause: tally.pausedBecause, resumes, control }),
    catchUp(window, number, atStart) {
      if (control > atStart.control) tell(window, number);
    },
    pause: tellEach,
    resume() {
      resumes += 1;
      tellEach();
    },
  };
}
