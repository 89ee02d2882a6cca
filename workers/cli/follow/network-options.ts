import { Option } from 'commander';

/** Options of commands that start rollouts, by which a user says what becomes of tasks that lack a network. */
export interface NetworkOptions {
  readonly offlineTests?: true;
  readonly leaveOut?: true;
}

export const offlineTestsOption = (): Option =>
  new Option('--offline-tests', 'run all tests without a network, also those that need one; the results say so');

export const leaveOutOption = (): Option =>
  new Option('--leave-out', 'leave out the tasks that need more network than TEMPER_NETWORK allows, and count them');
