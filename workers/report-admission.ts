import { Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Admission, Shortage } from '../activities/host/admission.ts';
import { resources } from '../infra/machine/level.ts';
import type { HostNotes } from '../infra/store/host-notes.ts';
import { gauges } from '../workflows/contracts/metrics.ts';
import { createNewestWriter } from './newest-writer.ts';

const subject = 'admission';

interface ReportingHost {
  readonly host: string;
  readonly notes: Pick<HostNotes, 'set'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Reports in the log, in `temper status` and as a metric when the host takes no rollouts for want of a resource, and why. */
export function reportAdmission(
  admission: Pick<Admission, 'shortage' | 'onChange'>,
  { host, notes, log }: ReportingHost,
): void {
  const gauge = Runtime.instance().metricMeter.createGauge(
    'temper_host_holds_back',
    'int',
    undefined,
    gauges.host_holds_back,
  );
  const writeNote = createNewestWriter<string | null>(
    (text) => notes.set(host, subject, text),
    (error) => log.warn({ error }, 'could not write the note for `temper status`; the host tries again'),
  );
  const report = (shortage: Shortage | null): void => {
    for (const resource of resources) gauge.set(resource === shortage?.resource ? 1 : 0, { resource });
    const text = shortage === null ? null : shortageText(shortage);
    if (text === null) log.info('takes rollouts');
    else log.warn({ ...shortage }, text);
    writeNote(text);
  };
  admission.onChange(report);
  report(admission.shortage);
}

/** Formats the reason why a host takes no rollouts. */
function shortageText({ resource, free, needed, limit }: Shortage): string {
  const unit = resource === 'memory' || resource === 'disk' ? ' MB' : '';
  const amounts = `${free.toLocaleString('en')}${unit} of ${resource} are free and ${needed.toLocaleString('en')}${unit} needed`;
  return `takes no new rollouts: ${amounts} (${limit}); they wait at the server`;
}
