import type { Command } from 'commander';
import { controlQueue, hostQueue } from '../../../workflows/contracts/queues.ts';
import type { reaper } from '../../../workflows/index.ts';
import type { ReaperResult } from '../../../workflows/reaper.ts';
import { type JsonOption, stackCommand } from '../stack/command.ts';
import { onStack } from '../stack/on-stack.ts';
import { counted, live, print, printJson } from '../text/output.ts';

interface ReapOptions extends JsonOption {
  readonly host?: string;
}

export function reapCommand(): Command {
  return stackCommand(
    'reap',
    "Removes what dead rollouts left behind on a host, which the stack does every minute anyway: a sandbox once two looks, at least 30 seconds apart, have found it orphaned. Other stacks' sandboxes are not touched.",
    'temper reap',
  )
    .option('--host <name>', 'name of the host (default: this machine)')
    .option('--json', 'print one JSON object to stdout')
    .action(reap);
}

async function reap(options: ReapOptions): Promise<void> {
  const { pollers } = await import('../../../infra/temporal/pollers.ts');
  await onStack(options, async ({ client, config }) => {
    const host = options.host ?? config.host;
    if ((await pollers(client, hostQueue(host), 'activity')).length === 0) {
      throw new Error(
        `no host worker runs for the host ${host}; start it with \`temper up\`, or correct --host or TEMPER_HOST`,
      );
    }
    live(`looking for what dead rollouts left on ${host}`);
    const result = await client.workflow.execute<typeof reaper>('reaper', {
      workflowId: `temper-reap-${host}`,
      taskQueue: controlQueue,
      args: [{ host }],
      workflowIdConflictPolicy: 'USE_EXISTING',
      staticSummary: `removes what dead rollouts left on ${host}`,
    });
    live('');
    if (options.json) printJson(result);
    else print(reapText(result));
  });
}

/** Formats what was removed and cancelled, with all names. */
export function reapText({ sandboxes, suspected, images, groups, rollouts }: ReaperResult): string {
  const removed = `removed ${counted(sandboxes.length, 'sandbox', 'sandboxes')} and ${counted(images.length, 'unused image')}`;
  const cancelled = `cancelled ${counted(groups.length, 'group')} and ${counted(rollouts.length, 'rollout')} of closed runs and sweeps`;
  const list = (names: readonly string[]): readonly string[] => names.map((name) => `  ${name}`);
  const doubted =
    suspected.length === 0
      ? []
      : [
          `${counted(suspected.length, 'more sandbox', 'more sandboxes')} found orphaned for the first time; removed when it is found again, within two minutes`,
          ...list(suspected),
        ];
  return [`${removed}, ${cancelled}`, ...list([...sandboxes, ...images, ...groups, ...rollouts]), ...doubted].join(
    '\n',
  );
}
