import { setHandler } from '@temporalio/workflow';
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
  /** Called after a resume. */
  onResume?(): void;
}

/** Handles the signals `pause` and `resume`, which may have conditions. */
export function handlePause(tally: Pausable, { what, changed, onResume }: PauseHandling): void {
  const pause = (reason?: string, when?: 'unless-paused'): void => {
    if (when === 'unless-paused' && tally.pausedBecause !== null) return;
    tally.pausedBecause = reason ?? 'paused by hand';
    changed();
  };
  setHandler(pauseSignal, pause, { description: `starts no ${what}; what runs continues; takes a reason` });
  const resume = (onlyIf?: string | null): void => {
    if (onlyIf != null && onlyIf !== tally.pausedBecause) return;
    tally.pausedBecause = null;
    tally.watch.forget();
    changed();
    onResume?.();
  };
  setHandler(resumeSignal, resume, { description: 'continues after a pause, also after one of its own' });
}
