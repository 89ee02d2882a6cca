import { createDirectory, type DirectoryPlace } from './directory.ts';
import { createHostNotes, type HostNotes } from './host-notes.ts';
import { createHosts, type Hosts } from './hosts.ts';
import { createLaneRecords, type LaneRecords } from './lane-records.ts';
import type { Objects } from './objects.ts';
import { createRecords, type Records } from './records.ts';
import { createRolloutRecords, type RolloutRecords } from './rollout-records.ts';
import type { S3Place } from './s3/place.ts';
import { createStartRecords, type StartRecords } from './start-records.ts';
import { createStore, type Store } from './store.ts';

/** The state that the processes of a stack share. What belongs to one host, such as the gateway's journals, is on its disk. */
export interface SharedState {
  readonly objects: Objects;
  readonly blobs: Store;
  /** Records of runs, sweeps and regrades. */
  readonly runs: Records;
  /** Records of rollouts that have ended. */
  readonly rollouts: RolloutRecords;
  /** Records of the starts of runs, sweeps, regrades and groups by hand. */
  readonly starts: StartRecords;
  readonly verdicts: Records;
  /** Records that belong to no run: quarantined tasks and packed task sets. */
  readonly common: Records;
  readonly hosts: Hosts;
  readonly hostNotes: HostNotes;
  readonly lanes: LaneRecords;
}

/** The place of the shared state. */
export type StorePlace = DirectoryPlace | S3Place;

/** The kinds of places; each is a sibling behind `Objects`. */
const kinds: { readonly [Kind in StorePlace['kind']]: (place: StorePlace & { kind: Kind }) => Promise<Objects> } = {
  directory: async ({ root }) => createDirectory(root),
  // The AWS SDK takes most of a second to load, which a stack on a directory need not wait for.
  s3: async (place) => (await import('./s3/open.ts')).openBucket(place),
};

/** Opens the objects of a place, without looking whether it can be used. */
export function openObjects(place: StorePlace): Promise<Objects> {
  return (kinds[place.kind] as (place: StorePlace) => Promise<Objects>)(place);
}

/** Opens the shared state of a stack. */
export async function openSharedState(place: StorePlace): Promise<SharedState> {
  const objects = await openObjects(place);
  const recordsOfHosts = createRecords(objects, 'hosts');
  return {
    objects,
    blobs: createStore(objects),
    runs: createRecords(objects, 'runs'),
    rollouts: createRolloutRecords(objects),
    starts: createStartRecords(objects),
    verdicts: createRecords(objects, 'verdicts'),
    common: createRecords(objects),
    hosts: createHosts(objects),
    hostNotes: createHostNotes(recordsOfHosts),
    lanes: createLaneRecords(recordsOfHosts),
  };
}
