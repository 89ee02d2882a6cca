import { setHandler } from '@temporalio/workflow';
import { pauseSignal, resumeSignal } from '../contracts/messages.ts';
import type { InfraWatch } from './infra-watch.ts';

/** What a pause and a resume change. */
export interface Pausable {
  pausedBecause: string | null;
  changes: number;
  readonly watch: InfraWatch;
}

/** `what`: what is not started while it is paused, for the lists of the UI. */
export function handlePause(books: Pausable, what: string): void {
  const pause = (reason?: string): void => {
    books.pausedBecause = reason ?? 'paused by hand';
    books.changes += 1;
  };
  setHandler(pauseSignal, pause, { description: `starts no ${what}; those in flight go on; takes a reason` });
  const resume = (): void => {
    books.pausedBecause = null;
    books.watch.forget();
    books.changes += 1;
  };
  setHandler(resumeSignal, resume, { description: 'goes on after a pause, also one of its own' });
}
