import { Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type Lanes, laneNames } from '../activities/host/lanes.ts';
import type { LaneRecords, LaneStates } from '../infra/store/lane-records.ts';
import { gauges } from '../workflows/contracts/metrics.ts';
import { createNewestWriter } from './newest-writer.ts';

/** Interval at which changes are reported. */
const everyMs = 2_000;

/**
 * Reports the lanes of a host whenever they have changed: as metrics, for `temper status`, and a lane that was narrowed or is
 * wide again in the log. Ends with the signal.
 */
export function reportLanes(
  lanes: Lanes,
  { host, records, log }: { readonly host: string; readonly records: LaneRecords; readonly log: Logger },
  signal: AbortSignal,
): void {
  const meter = Runtime.instance().metricMeter;
  const width = meter.createGauge('temper_lane_width', 'int', undefined, gauges.lane_width);
  const running = meter.createGauge('temper_lane_running', 'int', undefined, gauges.lane_running);
  let last: LaneStates = {};

  const record = createNewestWriter<LaneStates>(
    (states) => records.write(host, states),
    (error) => log.warn({ error }, 'could not record the lanes for `temper status`; the host tries again'),
  );
  const report = (): void => {
    const states = statesOf(lanes);
    if (JSON.stringify(states) === JSON.stringify(last)) return;
    for (const name of laneNames) {
      const state = states[name];
      if (state === undefined) continue;
      width.set(state.width, { lane: name });
      running.set(state.running, { lane: name });
      logChange(log, name, { before: last[name]?.width ?? state.most, ...state });
    }
    last = states;
    record(states);
  };
  const timer = setInterval(report, everyMs);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}

const statesOf = (lanes: Lanes): LaneStates =>
  Object.fromEntries(
    laneNames.map((name) => {
      const { width, running } = lanes[name];
      return [name, { most: width.most, width: width.now, running }];
    }),
  );

interface Change {
  readonly before: number;
  readonly width: number;
  readonly most: number;
}

function logChange(log: Logger, lane: string, { before, width, most }: Change): void {
  if (width < before) {
    log.warn(
      { lane, width, most },
      `lane ${lane} takes ${width} stages at once instead of ${before}: stages were slow or ran out of time`,
    );
  } else if (width > before && width === most) {
    log.info({ lane, width }, `lane ${lane} takes ${width} stages at once again`);
  }
}
