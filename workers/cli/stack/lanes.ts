import type { Client } from '@temporalio/client';
import type { LaneName } from '../../../activities/host/lanes.ts';
import type { LaneStates } from '../../../infra/store/lane-records.ts';
import { backlogOf } from '../../../infra/temporal/backlog.ts';
import {
  captureQueue,
  cleanUpQueue,
  evaluationQueue,
  imageQueue,
  provisionQueue,
} from '../../../workflows/contracts/queues.ts';
import { table } from '../text/output.ts';

/** One lane of a host, with the stages that wait for it at the server. */
export interface LaneRow {
  readonly lane: string;
  readonly width: number;
  readonly most: number;
  readonly running: number;
  readonly queued: number;
}

const queueOf: Readonly<Record<LaneName, (host: string) => string>> = {
  image: () => imageQueue,
  provision: provisionQueue,
  capture: captureQueue,
  release: cleanUpQueue,
  evaluate: () => evaluationQueue,
};
/** Returns the lanes of a host as its worker recorded them, and asks the server how many stages wait for each. */
export async function laneRows(client: Client, host: string, states: LaneStates | null): Promise<readonly LaneRow[]> {
  const rows = Object.entries(queueOf).map(async ([lane, queue]) => {
    const state = states?.[lane];
    return state === undefined ? [] : [{ lane, ...state, queued: await backlogOf(client, queue(host)) }];
  });
  return (await Promise.all(rows)).flat();
}

export function laneTable(rows: readonly LaneRow[]): string {
  return table(
    ['lane', 'running', 'at once', 'queued'],
    rows.map(({ lane, running, width, most, queued }) => [
      lane,
      String(running),
      width === most ? String(width) : `${width} of ${most}`,
      String(queued),
    ]),
  );
}
