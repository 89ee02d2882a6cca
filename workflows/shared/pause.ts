import { setHandler } from '@temporalio/workflow';
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
  resume(): void;
}

interface PauseHandling extends Pick<PauseSignals, 'what'> {
  changed(): void;
  /** Called after a resume. */
  onResume?(): void;
}

/** Handles the signals `pause` and `resume` of a workflow that makes the work itself. */
export function handlePause(tally: Pausable, { what, changed, onResume }: PauseHandling): void {
  handlePauseSignals(tally, {
    what,
    pause(reason) {
      tally.pausedBecause = reason;
      changed();
    },
    resume() {
      tally.pausedBecause = null;
      tally.watch.forget();
      changed();
      onResume?.();
    },
  });
}

/** Handles the signals `pause` and `resume`, which may have conditions. */
export function handlePauseSignals(
  tally: Pick<Pausable, 'pausedBecause'>,
  { what, pause, resume }: PauseSignals,
): void {
  const onPause = (reason?: string, when?: 'unless-paused'): void => {
    if (when === 'unless-paused' && tally.pausedBecause !== null) return;
    pause(reason ?? 'paused by hand');
  };
  setHandler(pauseSignal, onPause, { description: `starts no ${what}; what runs continues; takes a reason` });
  const onResume = (onlyIf?: string | null): void => {
    if (onlyIf != null && onlyIf !== tally.pausedBecause) return;
    resume();
  };
  setHandler(resumeSignal, onResume, { description: 'continues after a pause, also after one of its own' });
}
