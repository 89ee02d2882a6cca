import { setHandler } from '@temporalio/workflow';
import type { Budget } from '../contracts/budget.ts';
import { pauseSignal, resumeSignal } from '../contracts/messages.ts';
import type { OutcomeWatch } from './outcome-watch.ts';

/** The part of a tally that a pause and a resume change. */
export interface Pausable {
  pausedBecause: string | null;
  readonly watch: OutcomeWatch;
}

interface PauseSignals {
  /** The work that is not started during a pause, for the UI. */
  readonly what: string;
  pause(reason: string): void;
  /** Called with what a sweep tells its windows, if the sweep sent the signal. */
  resume(resumes?: number, budget?: Budget): void;
  /** Whether a signal whose condition does not hold is ignored; default: yes. */
  obeysConditions?(): boolean;
}

interface PauseHandling extends Pick<PauseSignals, 'what'> {
  changed(): void;
  /** Called after a resume, with what a sweep tells its windows, if the sweep sent the signal. */
  onResume?(resumes?: number, budget?: Budget): void;
}

/** Handles the signals `pause` and `resume` of a workflow that makes the work itself. */
export function handlePause(tally: Pausable, { what, changed, onResume }: PauseHandling): void {
  handlePauseSignals(tally, {
    what,
    pause(reason) {
      tally.pausedBecause = reason;
      changed();
    },
    resume(resumes, budget) {
      tally.pausedBecause = null;
      tally.watch.forget();
      changed();
      onResume?.(resumes, budget);
    },
  });
}

/** Handles the signals `pause` and `resume`, which may have conditions. */
export function handlePauseSignals(
  tally: Pick<Pausable, 'pausedBecause'>,
  { what, pause, resume, obeysConditions = () => true }: PauseSignals,
): void {
  const onPause = (reason?: string, when?: 'unless-paused'): void => {
    if (when === 'unless-paused' && tally.pausedBecause !== null && obeysConditions()) return;
    pause(reason ?? 'paused by hand');
  };
  setHandler(pauseSignal, onPause, { description: `starts no ${what}; what runs continues; takes a reason` });
  const onResume = (onlyIf?: string | null, resumes?: number, budget?: Budget): void => {
    if (onlyIf != null && onlyIf !== tally.pausedBecause && obeysConditions()) return;
    resume(resumes, budget);
  };
  setHandler(resumeSignal, onResume, { description: 'continues after a pause, also after one of its own' });
}
