import type { Command } from 'commander';
import { stackCommand } from '../stack/command.ts';
import { listLimit, listSweeps } from './eval/list.ts';
import { compareSweepsOf, showSweepOf } from './eval/reports.ts';
import { runSweep } from './eval/run-sweep.ts';
import { withSweepOptions } from './eval/sweep-options.ts';

export function evalCommand(): Command {
  const show = stackCommand(
    'show',
    'Shows a sweep: pass rates, tasks, costs, and the attempts that it left out.',
    'temper eval show my-sweep',
  )
    .argument('<sweep>', 'workflow id of an evaluation sweep')
    .option('--json', 'print one JSON object to stdout')
    .action(showSweepOf);
  const compare = stackCommand(
    'compare',
    'Compares sweeps with a first one on the tasks that both counted: the difference, a paired test, and the tasks whose pass rate changed. With several sweeps, p-values are adjusted for their number.',
    'temper eval compare before after',
  )
    .argument('<before>', 'workflow id of the first sweep')
    .argument('<after...>', 'workflow ids of the sweeps to compare with it')
    .option('--json', 'print one JSON object to stdout')
    .action(compareSweepsOf);
  const list = stackCommand('list', 'Lists the newest sweeps.', 'temper eval list --limit 5')
    .option('--limit <n>', 'maximum number of sweeps', listLimit, 20)
    .option('--json', 'print one JSON object per sweep to stdout')
    .action(listSweeps);
  const command = stackCommand(
    'eval',
    'Evaluates one policy version with a sweep: k attempts at each task of a set, without training. Ctrl-C cancels it.',
    'temper eval --tasks generated:test/1 --count 32 --attempts 4',
  );
  return withSweepOptions(command)
    .option('--id <name>', 'workflow id of the sweep (default: eval-<time>)')
    .option('--detach', 'print the id and exit instead of waiting')
    .option('--json', 'print the result as one JSON object to stdout')
    .enablePositionalOptions()
    .action(runSweep)
    .addCommand(list)
    .addCommand(show)
    .addCommand(compare);
}
