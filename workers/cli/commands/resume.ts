import type { Command } from 'commander';
import { resumeSignal } from '../../../workflows/contracts/messages.ts';
import { withWorkflow } from '../follow/with-workflow.ts';
import { type HomeOption, stackCommand } from '../stack/command.ts';
import { print } from '../text/output.ts';

export function resumeCommand(): Command {
  return stackCommand('resume', 'Lets a paused run, sweep, regrade or rollout go on', 'temper resume my-run')
    .argument('<id>', 'workflow id of a run, a sweep, a regrade, a group or a rollout')
    .action((id: string, options: HomeOption) =>
      withWorkflow(
        options,
        id,
        ['trainingRun', 'evaluationSweep', 'regrade', 'group', 'rollout'],
        async ({ handle }) => {
          await handle.signal(resumeSignal);
          print(`resumed ${id}`);
        },
      ),
    );
}
