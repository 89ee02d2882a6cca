import type { Command } from 'commander';
import { controlQueue, hostQueue } from '../../../workflows/contracts/queues.ts';
import type { reaper } from '../../../workflows/index.ts';
import type { ReaperResult } from '../../../workflows/reaper.ts';
import { type HomeOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { counted, print, printJson } from '../text/output.ts';

interface ReapOptions extends HomeOption {
  readonly host?: string;
  readonly json?: true;
}

export function reapCommand(): Command {
  return stackCommand(
    'reap',
    "Removes now what dead rollouts left behind on a host, which the stack does every minute anyway. Other stacks' sandboxes are not touched.",
    'temper reap',
  )
    .option('--host <name>', 'name of the host (default: this machine)')
    .option('--json', 'print one JSON object to stdout')
    .action(reap);
}

async function reap(options: ReapOptions): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const { pollers } = await import('../../up/ready.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const host = options.host ?? stack.config.host;
    if ((await pollers(stack.client, hostQueue(host), 'activity')).length === 0) {
      throw new Error(
        `no host worker runs for the host ${host}; start it with \`temper up\`, or correct --host or TEMPER_HOST`,
      );
    }
    const result = await stack.client.workflow.execute<typeof reaper>('reaper', {
      workflowId: `temper-reap-${host}`,
      taskQueue: controlQueue,
      args: [{ host }],
      workflowIdConflictPolicy: 'USE_EXISTING',
      staticSummary: `removes what dead rollouts left on ${host}`,
    });
    if (options.json) return printJson(result);
    print(reapText(result));
  } finally {
    await stack.close();
  }
}

/** Formats what was removed and cancelled, with all names. */
export function reapText({ sandboxes, images, groups, rollouts }: ReaperResult): string {
  const removed = `removed ${counted(sandboxes.length, 'sandbox', 'sandboxes')} and ${counted(images.length, 'unused image')}`;
  const cancelled = `cancelled ${counted(groups.length, 'group')} and ${counted(rollouts.length, 'rollout')} of closed runs and sweeps`;
  return [
    `${removed}, ${cancelled}`,
    ...[...sandboxes, ...images, ...groups, ...rollouts].map((name) => `  ${name}`),
  ].join('\n');
}
