import { Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { FailingKinds } from '../activities/host/failing-kinds.ts';
import type { HostNotes } from '../infra/store/host-notes.ts';
import { gauges } from '../workflows/contracts/metrics.ts';
import { createNewestWriter } from './newest-writer.ts';

const subject = 'sandboxes';

interface ReportingHost {
  readonly host: string;
  readonly notes: Pick<HostNotes, 'set'>;
  readonly log: Pick<Logger, 'warn'>;
}

/** Reports in `temper status` and as a metric which sandboxes of the host fail, and why. The log has it with the intake. */
export function reportFailing(
  failing: Pick<FailingKinds, 'reason' | 'onChange'>,
  { host, notes, log }: ReportingHost,
): void {
  const gauge = Runtime.instance().metricMeter.createGauge(
    'temper_host_sandboxes_failing',
    'int',
    undefined,
    gauges.host_sandboxes_failing,
  );
  const writeNote = createNewestWriter<string | null>(
    (text) => notes.set(host, subject, text),
    (error) => log.warn({ error }, 'could not write the note for `temper status`; the host tries again'),
  );
  const report = (): void => {
    const { reason } = failing;
    writeNote(reason === null ? null : `takes no new work: ${reason}; it looks again every ten seconds`);
  };
  failing.onChange((watch) => {
    gauge.set(watch.failing === null ? 0 : 1, { kind: watch.kind });
    report();
  });
  report();
}
