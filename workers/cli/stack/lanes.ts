import type { Client } from '@temporalio/client';
import type { LaneName } from '../../../activities/host/lanes.ts';
import type { LaneStates } from '../../../infra/store/lane-records.ts';
import { backlogOf } from '../../../infra/temporal/backlog.ts';
import {
  captureQueue,
  cleanUpQueue,
  evaluationQueue,
  imageQueue,
  ownEvaluationQueue,
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

const queuesOf: Readonly<Record<LaneName, (host: string) => readonly string[]>> = {
  image: () => [imageQueue],
  provision: (host) => [provisionQueue(host)],
  capture: (host) => [captureQueue(host)],
  release: (host) => [cleanUpQueue(host)],
  evaluate: (host) => [evaluationQueue, ownEvaluationQueue(host)],
};

/** Returns the lanes of a host as its worker recorded them, and asks the server how many stages wait for each. */
export async function laneRows(client: Client, host: string, states: LaneStates | null): Promise<readonly LaneRow[]> {
  const rows = Object.entries(queuesOf).map(async ([lane, queues]) => {
    const state = states?.[lane];
    if (state === undefined) return [];
    const queued = await Promise.all(queues(host).map((queue) => backlogOf(client, queue)));
    return [{ lane, ...state, queued: queued.reduce((sum, one) => sum + one, 0) }];
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
