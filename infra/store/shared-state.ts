import { createDirectory } from './directory.ts';
import { createHostNotes, type HostNotes } from './host-notes.ts';
import { createLaneRecords, type LaneRecords } from './lane-records.ts';
import type { Objects } from './objects.ts';
import { createRecords, type Records } from './records.ts';
import { createStore, type Store } from './store.ts';

/** The state that the processes of a stack share. What belongs to one host, such as the gateway's journals, is on its disk. */
export interface SharedState {
  readonly objects: Objects;
  readonly blobs: Store;
  /** Records of runs, sweeps and regrades. */
  readonly runs: Records;
  readonly verdicts: Records;
  /** Records that belong to no run: quarantined tasks, packed task sets and the trainer's session. */
  readonly common: Records;
  readonly hostNotes: HostNotes;
  readonly lanes: LaneRecords;
}

/** The place of the shared state. */
export type StorePlace = { readonly kind: 'directory'; readonly root: string };

/** Opens the shared state of a stack. */
export async function openSharedState(place: StorePlace): Promise<SharedState> {
  const objects = createDirectory(place.root);
  const hosts = createRecords(objects, 'hosts');
  return {
    objects,
    blobs: createStore(objects),
    runs: createRecords(objects, 'runs'),
    verdicts: createRecords(objects, 'verdicts'),
    common: createRecords(objects),
    hostNotes: createHostNotes(hosts),
    lanes: createLaneRecords(hosts),
  };
}
