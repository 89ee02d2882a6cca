import type { Command } from 'commander';
import type { Quarantined } from '../../../infra/tasks/quarantine.ts';
import { type HomeOption, runningConfigOf, stackCommand } from '../command.ts';
import { Unsuccessful } from '../errors.ts';
import { print } from '../output.ts';

export function releaseCommand(): Command {
  return stackCommand(
    'release',
    'Lets a quarantined task be chosen again by runs and sweeps',
    'temper tasks release generated-test-1-0',
  )
    .argument('<task>', 'its id, or one of its addresses')
    .action(release);
}

async function release(named: string, options: HomeOption): Promise<void> {
  const { createRecords } = await import('../../../infra/store/records.ts');
  const { createQuarantine } = await import('../../../infra/tasks/quarantine.ts');
  const config = await runningConfigOf(options);
  const released = await createQuarantine(createRecords(config.home)).release(named);
  if (released === 0) {
    throw new Unsuccessful(`expected the id or an address of a quarantined task, got ${named}, which is not`);
  }
  print(`released ${named}`);
}

export const sinceOf = (task: Quarantined | undefined): string | null =>
  task === undefined ? null : new Date(task.since).toISOString();

/** What the evaluations of one diff said, each with the beginning of its log's digest. */
export const flakyText = ({ evidence }: Quarantined): string =>
  evidence.map(({ reward, log }) => `${reward ?? 'no reward'} (log ${log?.slice(0, 12) ?? 'none'})`).join(', ');
