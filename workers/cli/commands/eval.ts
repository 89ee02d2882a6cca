import type { Command } from 'commander';
import { stackCommand } from '../stack/command.ts';
import { compareSweepsOf } from './eval/compare.ts';
import { runSweep } from './eval/run-sweep.ts';
import { showSweepOf } from './eval/show.ts';
import { withSweepOptions } from './eval/sweep-options.ts';

export function evalCommand(): Command {
  const show = stackCommand(
    'show',
    'Shows a sweep: its rates, tasks, costs and what it left out',
    'temper eval show my-sweep',
  )
    .argument('<sweep>', 'workflow id of an evaluation sweep')
    .option('--json', 'one JSON object on stdout')
    .action(showSweepOf);
  const compare = stackCommand(
    'compare',
    'Compares two sweeps over the tasks that both have: the difference, a paired test, the tasks that changed sides',
    'temper eval compare before after',
  )
    .argument('<before>', 'workflow id of a sweep')
    .argument('<after>', 'workflow id of another one')
    .option('--json', 'one JSON object on stdout')
    .action(compareSweepsOf);
  const command = stackCommand(
    'eval',
    'Evaluates one policy version by a sweep: k attempts at each task of a set. It trains nothing. Ctrl-C cancels it.',
    'temper eval --tasks generated:test/1 --count 32 --attempts 4',
  );
  return withSweepOptions(command)
    .option('--id <name>', 'workflow id of the sweep (default: eval-<time>)')
    .option('--detach', 'print the id and return, instead of waiting')
    .option('--json', 'the result as one JSON object on stdout')
    .enablePositionalOptions()
    .action(runSweep)
    .addCommand(show)
    .addCommand(compare);
}
