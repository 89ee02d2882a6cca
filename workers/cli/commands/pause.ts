import type { Command } from 'commander';
import { pauseSignal } from '../../../workflows/contracts/messages.ts';
import { withWorkflow } from '../follow/with-workflow.ts';
import { type HomeOption, stackCommand } from '../stack/command.ts';
import { print } from '../text/output.ts';

export function pauseCommand(): Command {
  return stackCommand(
    'pause',
    'Pauses a run, a sweep, a regrade or a rollout: what runs goes on to the end of its stage, nothing new starts',
    'temper pause my-run --reason "new engine"',
  )
    .argument('<id>', 'workflow id of a run, a sweep, a regrade, a group or a rollout')
    .option('--reason <text>', 'shown in the UI and by temper show')
    .action((id: string, options: HomeOption & { readonly reason?: string }) =>
      withWorkflow(
        options,
        id,
        ['trainingRun', 'evaluationSweep', 'regrade', 'group', 'rollout'],
        async ({ handle }) => {
          await handle.signal(pauseSignal, options.reason);
          print(`paused ${id}; go on with \`temper resume ${id}\``);
        },
      ),
    );
}
