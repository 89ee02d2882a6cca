import type { Command } from 'commander';
import type { KnownWorkflow } from '../follow/find-known.ts';
import type { WorkflowKind } from '../follow/find-workflow.ts';
import { type JsonOption, stackCommand } from '../stack/command.ts';
import { onStore } from '../stack/on-stack.ts';
import type { ReadableStack } from '../stack/stack-client.ts';

interface ShowOptions extends JsonOption {
  readonly trace?: true;
}

/** Prints a workflow, for people or as JSON. */
type Show = (stack: ReadableStack, known: KnownWorkflow, json: boolean) => Promise<void>;

/** The view of each kind of workflow, imported when it is shown. */
const views: Readonly<Record<WorkflowKind, () => Promise<Show>>> = {
  rollout: async () => (await import('./show/rollout.ts')).showRollout,
  trainingRun: async () => (await import('./show/run.ts')).showRun,
  evaluationSweep: async () => (await import('./show/sweep.ts')).showSweep,
  regrade: async () => (await import('./show/regrade.ts')).showRegrade,
  group: async () => (await import('./show/recorded.ts')).showRecorded,
  trainingStep: async () => (await import('./show/recorded.ts')).showRecorded,
};

const traceView = async (): Promise<Show> => (await import('./show/rollout.ts')).showTrace;

export function showCommand(): Command {
  return stackCommand(
    'show',
    'Shows one run, group, rollout, sweep or regrade: its progress, or how it ended, with its conversation, diff and verdict.',
    'temper show rollout/quixbugs-gcd/1f3c9a2b',
  )
    .argument('<id>', 'workflow id, as listed by temper status')
    .option('--json', 'print one JSON object to stdout')
    .option('--trace', 'print the trajectory of a rollout as JSON (ATIF 1.7), with token ids and logprobs')
    .action(show);
}

async function show(id: string, options: ShowOptions): Promise<void> {
  const { findKnown } = await import('../follow/find-known.ts');
  await onStore(options, async (stack) => {
    const known = await findKnown(stack, id);
    const view = await (options.trace ? traceView() : views[known.kind]());
    await view(stack, known, options.json === true);
  });
}
