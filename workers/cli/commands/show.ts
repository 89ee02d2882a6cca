import type { Command } from 'commander';
import { type HomeOption, runningConfigOf, stackCommand } from '../stack/command.ts';

export interface ShowOptions extends HomeOption {
  readonly json?: true;
  readonly trace?: true;
}

export function showCommand(): Command {
  return stackCommand(
    'show',
    'Shows one run, group, rollout, evaluation or regrade: where it is, how it ended, what was said and changed',
    'temper show rollout/quixbugs-gcd/1f3c9a2b',
  )
    .argument('<id>', 'workflow id, as temper status lists it')
    .option('--json', 'one JSON object on stdout')
    .option('--trace', "a rollout's trajectory as JSON in the format ATIF 1.7, with token ids and logprobs")
    .action(show);
}

async function show(id: string, options: ShowOptions): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const { findWorkflow } = await import('../follow/find-workflow.ts');
  const { showRollout } = await import('./show/rollout.ts');
  const { showTrace } = await import('./show/trace.ts');
  const { showRun } = await import('./show/run.ts');
  const { showRegrade } = await import('./show/regrade.ts');
  const { showSweep } = await import('./show/sweep.ts');
  const { showOther } = await import('./show/other.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const found = await findWorkflow(stack.client, id);
    const json = options.json === true;
    if (options.trace) await showTrace(stack, found);
    else if (found.kind === 'rollout') await showRollout(stack, found, json);
    else if (found.kind === 'trainingRun') await showRun(stack, found, json);
    else if (found.kind === 'evaluationSweep') await showSweep(stack, found, json);
    else if (found.kind === 'regrade') await showRegrade(stack, found, json);
    else await showOther(found, json);
  } finally {
    await stack.close();
  }
}
