import type { Command } from 'commander';
import type { Quarantined } from '../../../../infra/tasks/quarantine.ts';
import { type JsonOption, runningConfigOf, stackCommand } from '../../stack/command.ts';
import { Unsuccessful } from '../../text/errors.ts';
import { print, printJson } from '../../text/output.ts';

export function releaseCommand(): Command {
  return stackCommand(
    'release',
    'Releases a task from quarantine, so that runs and sweeps may choose it again.',
    'temper tasks release generated-test-1-0',
  )
    .argument('<task>', 'id or address of the task')
    .option('--json', 'print one JSON object to stdout')
    .action(release);
}

async function release(named: string, options: JsonOption): Promise<void> {
  const { openSharedState } = await import('../../../../infra/store/shared-state.ts');
  const { createQuarantine } = await import('../../../../infra/tasks/quarantine.ts');
  const config = await runningConfigOf(options);
  const { common } = await openSharedState(config.store);
  const released = await createQuarantine(common).release(named);
  if (released === 0) {
    throw new Unsuccessful(`${named} is not in quarantine; \`temper tasks ls SET\` shows which tasks are`);
  }
  if (options.json) printJson({ task: named, released });
  else print(`released ${named}`);
}

export const sinceOf = (task: Quarantined | undefined): string | null =>
  task === undefined ? null : new Date(task.since).toISOString();

/** Describes the evaluations of one diff that disagree, each with the beginning of its log's digest. */
export const flakyText = ({ evidence }: Pick<Quarantined, 'evidence'>): string =>
  evidence
    .map(({ reward, verdict, log }) => {
      const [kind = 'no verdict'] = verdict?.split(/[,:]/) ?? [];
      return `${reward ?? 'no reward'} ${kind} (log ${log?.slice(0, 12) ?? 'none'})`;
    })
    .join(', ');
