import { failureKinds } from '../../../workflows/contracts/failures.ts';
import type { FoundWorkflow } from './find-workflow.ts';

/** An activity of a workflow that is tried again after a failure. */
export interface RepeatedWork {
  /** The name of the activity, which is that of the stage. */
  readonly stage: string;
  /** The number of the try, from 1: the one that runs, or the next one. */
  readonly attempt: number;
  /** Whether it waits for its next try. */
  readonly waits: boolean;
  /** The type of the last failure, and what it said. */
  readonly type: string;
  readonly message: string;
}

/** The state of an activity that no worker runs, as the server numbers them. */
const scheduled = 1;

/** Returns the activities of an open workflow that are tried again, with the reason. */
export function repeatedWork({ description }: Pick<FoundWorkflow, 'description'>): readonly RepeatedWork[] {
  return (description.raw.pendingActivities ?? []).flatMap(({ activityType, attempt, state, lastFailure }) => {
    if (lastFailure === null || lastFailure === undefined || (attempt ?? 1) < 2) return [];
    const { applicationFailureInfo, timeoutFailureInfo, message } = lastFailure;
    const type = applicationFailureInfo?.type ?? (timeoutFailureInfo ? 'Timeout' : 'Failure');
    return [
      {
        stage: activityType?.name ?? 'activity',
        attempt: attempt ?? 1,
        waits: state === scheduled,
        type,
        message: message ?? '',
      },
    ];
  });
}

/** Failures by which an activity says that it waits. Nothing has failed then. */
const waiting = ['Throttled'];

/** Whether work is repeated because something failed, and not because it has to wait for a slot or for a provider. */
export const hasFailed = ({ type }: RepeatedWork): boolean =>
  type === 'Timeout' || (Object.hasOwn(failureKinds, type) && !waiting.includes(type));

/** Formats what is repeated: stage, attempt and reason. */
export function repeatedText({ stage, attempt, waits, type, message }: RepeatedWork): string {
  const state = waits ? `${stage} waits for attempt ${attempt}` : `${stage} is at attempt ${attempt}`;
  return `${state} after ${type}${message === '' ? '' : `: ${message}`}`;
}

/** The same in a few words, for a table. */
export const shortRepeatedText = ({ stage, attempt, type }: RepeatedWork): string =>
  `${stage}, attempt ${attempt} after ${type}`;
