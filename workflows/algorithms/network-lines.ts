import type { RunStatus } from '../contracts/run.ts';

/** Says what a run did about tasks that need a network which they do not get; empty if it did nothing. */
export function networkLines({
  tasksLeftOut,
  offlineTests,
}: Pick<RunStatus, 'tasksLeftOut' | 'offlineTests'>): readonly string[] {
  return [
    ...(tasksLeftOut === undefined ? [] : [`tasks left out, because they lack a network: ${tasksLeftOut}`]),
    ...(offlineTests === undefined ? [] : ['all tests run without a network, also those that need one']),
  ];
}
