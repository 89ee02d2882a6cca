import type { Command } from 'commander';
import { stackCommand, wholeNumber } from '../stack/command.ts';
import { runRegrade } from './regrade/run-regrade.ts';

export function regradeCommand(): Command {
  return stackCommand(
    'regrade',
    'Grades rollouts again that have ended, by their diffs: no agent runs, no rollout changes. Ctrl-C cancels it.',
    'temper regrade --run my-run',
  )
    .argument('[rollout...]', 'workflow ids of rollouts')
    .option('--run <id>', 'all of this run or sweep')
    .option('--grader <version>', 'only those that this version of the grader judged; none: those that name none')
    .option(
      '--tasks <dir|address>',
      'by these tasks as they are now, found by their ids, instead of those the rollouts had',
    )
    .option('--repeat <n>', 'evaluations of each diff, to find tests that are flaky (default: 1)', wholeNumber(1, 20))
    .option('--concurrency <n>', 'rollouts at once (default: 16)', wholeNumber(1, 500))
    .option('--reuse-verdicts', 'take cached verdicts where there are any, and keep those of this regrade')
    .option('--id <name>', 'workflow id of the regrade (default: regrade-<time>)')
    .option('--detach', 'print the id and return, instead of waiting')
    .option('--json', 'the result as one JSON object on stdout, with a row for each rollout')
    .action(runRegrade);
}
