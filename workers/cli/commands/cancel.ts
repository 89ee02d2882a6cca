import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { withWorkflow } from '../follow/with-workflow.ts';
import { type HomeOption, stackCommand } from '../stack/command.ts';
import { Unsuccessful } from '../text/errors.ts';
import { note, print } from '../text/output.ts';

const WAIT_MS = 120_000;

export function cancelCommand(): Command {
  return stackCommand(
    'cancel',
    'Cancels a run with all of its groups, or a single rollout, and waits until it has cleaned up',
    'temper cancel my-run',
  )
    .argument('<id>', 'workflow id of a run, a group, a rollout, an evaluation or a regrade')
    .option('--no-wait', 'return as soon as the server knows')
    .action((id: string, options: HomeOption & { readonly wait: boolean }) =>
      withWorkflow(
        options,
        id,
        ['trainingRun', 'group', 'rollout', 'evaluationSweep', 'regrade'],
        async ({ handle }) => {
          await handle.cancel();
          if (!options.wait) return print(`asked ${id} to end`);
          note(`cancelling ${id}; waiting until it has cleaned up`);
          const gone = handle.result().then(
            () => true,
            () => true,
          );
          const waited = new AbortController();
          const late = sleep(WAIT_MS, false, { signal: waited.signal }).catch(() => false);
          const ended = await Promise.race([gone, late]);
          waited.abort();
          if (!ended) {
            throw new Unsuccessful(
              `${id} has not ended within ${WAIT_MS / 1000} s; it goes on cleaning up: see \`temper show ${id}\`, and \`temper doctor\` for workers that are missing`,
            );
          }
          print(`${id} has ended (${(await handle.describe()).status.name.toLowerCase()})`);
        },
      ),
    );
}
