import { setHandler } from '@temporalio/workflow';
import type { Budget } from '../contracts/budget.ts';
import { pauseSignal, resumeSignal } from '../contracts/messages.ts';
import type { OutcomeWatch } from './outcome-watch.ts';

/** The part of a tally that a pause and a resume change. */
export interface Pausable {
  pausedBecause: string | null;
  readonly watch: OutcomeWatch;
}

interface PauseHandling {
  /** The work that is not started during a pause, for the UI. */
  readonly what: string;
  changed(): void;
  /** Called after a resume, with what a sweep tells its windows, if the sweep sent the signal. */
  onResume?(resumes?: number, budget?: Budget): void;
}

/** Handles the signals `pause` and `resume`. */
export function handlePause(tally: Pausable, { what, changed, onResume }: PauseHandling): void {
  const pause = (reason?: string, when?: 'unless-paused'): void => {
    if (when === 'unless-paused' && tally.pausedBecause !== null) return;
    tally.pausedBecause = reason ?? 'paused by hand';
    changed();
  };
  setHandler(pauseSignal, pause, { description: `starts no ${what}; what runs continues; takes a reason` });
  const resume = (onlyIf?: string | null, resumes?: number, budget?: Budget): void => {
    if (onlyIf != null && onlyIf !== tally.pausedBecause) return;
    tally.pausedBecause = null;
    tally.watch.forget();
    changed();
    onResume?.(resumes, budget);
  };
  setHandler(resumeSignal, resume, { description: 'continues after a pause, also after one of its own' });
}
