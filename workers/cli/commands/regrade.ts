import type { Command } from 'commander';
import { stackCommand, wholeNumber } from '../stack/command.ts';
import { runRegrade } from './regrade/run-regrade.ts';

export function regradeCommand(): Command {
  return stackCommand(
    'regrade',
    'Grades the diffs of finished rollouts again. No agent runs, and the rollouts stay as they are. Ctrl-C cancels it.',
    'temper regrade --run my-run',
  )
    .argument('[rollout...]', 'workflow ids of rollouts')
    .option('--run <id>', 'all rollouts of this run or sweep')
    .option('--grader <version>', 'only rollouts judged by this grader version; "none" = rollouts without a verdict')
    .option(
      '--tasks <dir|address>',
      'grade by these tasks, matched by id, instead of by the versions that the rollouts had',
    )
    .option('--repeat <n>', 'evaluations of each diff, to reveal flaky tests (default: 1)', wholeNumber(1, 20))
    .option('--concurrency <n>', 'rollouts graded at once (default: 16)', wholeNumber(1, 500))
    .option('--reuse-verdicts', 'reuse cached verdicts, and cache those of this regrade')
    .option('--id <name>', 'workflow id of the regrade (default: regrade-<time>)')
    .option('--detach', 'print the id and exit instead of waiting')
    .option('--json', 'print the result as one JSON object to stdout, with a row for each rollout')
    .action(runRegrade);
}
