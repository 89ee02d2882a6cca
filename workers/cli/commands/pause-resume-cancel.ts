import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { pauseSignal, resumeSignal, type SkippedStep, skipStepUpdate } from '../../../workflows/contracts/messages.ts';
import type { FoundWorkflow, WorkflowKind } from '../follow/find-workflow.ts';
import { onOpenWorkflow } from '../follow/open-workflow.ts';
import { type JsonOption, stackCommand } from '../stack/command.ts';
import { Unsuccessful } from '../text/errors.ts';
import { counted, note, print, printJson } from '../text/output.ts';

/** Kinds of workflow that these commands work on; a training step ends too soon to be worth a pause. */
const kinds: readonly WorkflowKind[] = ['trainingRun', 'evaluationSweep', 'regrade', 'group', 'rollout'];
const idHelp = 'workflow id of a run, sweep, regrade, group or rollout';
const jsonHelp = 'print one JSON object to stdout';
const cleanUpMs = 120_000;

export function pauseCommand(): Command {
  return stackCommand(
    'pause',
    'Pauses a run, sweep, regrade or rollout: stages in progress finish, and no new one starts.',
    'temper pause my-run --reason "new engine"',
  )
    .argument('<id>', idHelp)
    .option('--reason <text>', 'shown by temper show and in the Temporal UI')
    .option('--json', jsonHelp)
    .action((id: string, options: JsonOption & { readonly reason?: string }) =>
      onOpenWorkflow(options, id, kinds, async ({ handle, kind }) => {
        await handle.signal(pauseSignal, options.reason);
        if (options.json) printJson({ id, kind, paused: true });
        else {
          print(`paused ${id}`);
          note(`resume it with \`temper resume ${id}\``);
        }
      }),
    );
}

export function resumeCommand(): Command {
  return stackCommand('resume', 'Resumes a paused run, sweep, regrade or rollout.', 'temper resume my-run')
    .argument('<id>', idHelp)
    .option('--skip-step', 'leave out the step of a run that has failed: its groups are not trained on')
    .option('--json', jsonHelp)
    .action((id: string, options: ResumeOptions) =>
      onOpenWorkflow(options, id, options.skipStep ? ['trainingRun'] : kinds, async ({ handle, kind }) => {
        const skipped = options.skipStep ? await handle.executeUpdate(skipStepUpdate) : null;
        if (skipped === null) await handle.signal(resumeSignal);
        if (options.json) printJson({ id, kind, paused: false, ...(skipped !== null && { skipped }) });
        else print(`resumed ${id}${skipped === null ? '' : `; temper will skip step ${skippedText(skipped)}`}`);
      }),
    );
}

interface ResumeOptions extends JsonOption {
  readonly skipStep?: true;
}

const skippedText = ({ step, groups }: SkippedStep): string => `${step} with its ${counted(groups, 'group')}`;

export function cancelCommand(): Command {
  return stackCommand(
    'cancel',
    'Cancels a run with all of its groups, a sweep, a regrade or a single rollout, and waits for its clean-up.',
    'temper cancel my-run',
  )
    .argument('<id>', idHelp)
    .option('--no-wait', 'return at once instead of waiting for the clean-up')
    .option('--json', jsonHelp)
    .action((id: string, options: CancelOptions) =>
      onOpenWorkflow(options, id, kinds, (found) => cancel(found, options)),
    );
}

interface CancelOptions extends JsonOption {
  readonly wait: boolean;
}

async function cancel({ handle, kind }: FoundWorkflow, options: CancelOptions): Promise<void> {
  const id = handle.workflowId;
  await handle.cancel();
  if (options.wait) {
    note(`cancelling ${id}; waiting for its clean-up`);
    if (!(await endsInTime(handle.result()))) {
      throw new Unsuccessful(
        `${id} has not ended within ${cleanUpMs / 1000} s; its clean-up continues: see \`temper show ${id}\`, and run \`temper doctor\` to find missing workers`,
      );
    }
  }
  const status = (await handle.describe()).status.name.toLowerCase();
  if (options.json) printJson({ id, kind, status });
  else print(options.wait ? `${id} has ended (${status})` : `requested the cancellation of ${id}`);
}

async function endsInTime(result: Promise<unknown>): Promise<boolean> {
  const ended = result.then(
    () => true,
    () => true,
  );
  const waited = new AbortController();
  const late = sleep(cleanUpMs, false, { signal: waited.signal }).catch(() => false);
  return await Promise.race([ended, late]).finally(() => waited.abort());
}
