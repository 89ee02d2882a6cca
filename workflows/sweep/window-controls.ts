import { type ChildWorkflowHandle, patched } from '@temporalio/workflow';
import type { Budget } from '../contracts/budget.ts';
import { pauseSignal, resumeSignal, windowControlSignal } from '../contracts/messages.ts';
import type { SweepWindowControl, SweepWindowRequest } from '../contracts/sweep-state.ts';
import type { sweepWindow } from '../sweep-window.ts';
import type { SweepTally } from './tally.ts';

export type Window = ChildWorkflowHandle<typeof sweepWindow>;
type Deliver = (window: Window, number: number) => Promise<void>;
type AtStart = Required<Pick<SweepWindowRequest, 'pausedBecause' | 'resumes' | 'control'>>;

/** Tells the windows of a sweep its state at each change. Signals have no order, so the changes have numbers. */
export interface WindowControls {
  /** The number of resumes. A window that paused before it knew of the last one has resumed by now, or is about to. */
  readonly resumes: number;
  /** Returns the state that a window which starts now is given. */
  atStart(): AtStart;
  /** Tells a window that has started what has changed since it was given its state. */
  catchUp(window: Window, number: number, atStart: AtStart): Promise<void>;
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
  // Sweeps of earlier workers sent signals without a number.
  const isNumbered = (): boolean => patched('numbered-window-controls');

  const tell: Deliver = (window, number) => {
    const { pausedBecause } = tally;
    const now: SweepWindowControl = { number: control, pausedBecause, resumes, budget: partOf(number) };
    return window.signal(windowControlSignal, now);
  };
  const resumeOne: Deliver = (window, number) => window.signal(resumeSignal, undefined, resumes, partOf(number));
  const pauseOne: Deliver = (window) => window.signal(pauseSignal, tally.pausedBecause ?? undefined);
  function tellEach(unnumbered: Deliver): void {
    control += 1;
    const deliver = isNumbered() ? tell : unnumbered;
    for (const [number, window] of running) void deliver(window, number).catch(ifEnded);
  }

  return {
    get resumes() {
      return resumes;
    },
    atStart: () => ({ pausedBecause: tally.pausedBecause, resumes, control }),
    async catchUp(window, number, atStart) {
      if (control > atStart.control && isNumbered()) return tell(window, number).catch(ifEnded);
      if (resumes > atStart.resumes) await resumeOne(window, number);
      const { pausedBecause } = tally;
      if (pausedBecause !== null && pausedBecause !== atStart.pausedBecause) await pauseOne(window, number);
    },
    pause: () => tellEach(pauseOne),
    resume() {
      resumes += 1;
      tellEach(resumeOne);
    },
  };
}

/** A window that has just ended can't be signalled, and need not be. */
const ifEnded = (): void => undefined;
