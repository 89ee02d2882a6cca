import { createDirectory } from '../../../infra/store/directory.ts';
import { createRecords as createRecordsOf, type Records } from '../../../infra/store/records.ts';
import { createRolloutRecords, type RolloutRecords } from '../../../infra/store/rollout-records.ts';
import { createStartRecords, type StartRecords } from '../../../infra/store/start-records.ts';
import { createStore, type Store } from '../../../infra/store/store.ts';

/** Creates a store of blobs in a directory: `store/` of a home, or a directory of its own. */
export function createFileStore(directory: string): Store {
  return createStore(createDirectory(directory.replace(/\/store$/, '')));
}

/** Creates records in a directory, such as `runs/` of a home. */
export function createRecords(directory: string): Records {
  return createRecordsOf(createDirectory(directory));
}

/** Creates the records of rollouts in a home. */
export const createFileRollouts = (home: string): RolloutRecords => createRolloutRecords(createDirectory(home));

/** Creates the records of starts in a home. */
export const createFileStarts = (home: string): StartRecords => createStartRecords(createDirectory(home));
