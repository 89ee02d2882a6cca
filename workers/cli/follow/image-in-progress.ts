import { defaultPayloadConverter } from '@temporalio/common';
import { type ImageProgress, readImageProgress } from '../../../infra/sandbox/image.ts';
import type { FoundWorkflow } from './find-workflow.ts';

/** Returns what a rollout's sandbox waits for until its image is there, as its activity reports. Undefined if it does not wait. */
export function imageInProgress({ description }: Pick<FoundWorkflow, 'description'>): ImageProgress | undefined {
  const reports = (description.raw.pendingActivities ?? []).flatMap(({ heartbeatDetails }) => {
    const [payload] = heartbeatDetails?.payloads ?? [];
    return (payload && readImageProgress(defaultPayloadConverter.fromPayload(payload))) ?? [];
  });
  return reports.find(({ doing }) => doing !== 'ready');
}
