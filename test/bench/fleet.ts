/**
 * Measures a fleet's Temporal server, database and workers while many rollouts have sandboxes with an agent that sleeps, and
 * many more wait for a place. Run it as root on an idle machine that can run a Temporal server on PostgreSQL.
 */
import { Command } from 'commander';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { print, printJson } from '../../workers/cli/text/output.ts';
import { fleetFiguresOf } from './fleet/figures.ts';
import { type Fleet, observeFleet } from './fleet/observe.ts';
import { fleetReport } from './fleet/report.ts';
import { interruptible } from './interruptible.ts';

await new Command('npm run bench:fleet --')
  .description(
    'Measures what a Temporal server on PostgreSQL, its database and the workers need while agents sleep in sandboxes and ' +
      'other rollouts wait for a place, and how fast a place is given to the next. Run it as root on an idle machine.',
  )
  .option('--asleep <n>', 'rollouts with a sandbox in which the agent sleeps', wholeNumber(1, 10_000), 50)
  .option('--waiting <n>', 'rollouts that wait for a place', wholeNumber(1, 100_000), 9_000)
  // Heartbeats of an agent are 80 s apart. In less than that, the number of writes would depend on when the measurement begins.
  .option('--sleep <seconds>', 'time for which sleeping and waiting are measured', wholeNumber(1, 86_400), 240)
  .option('--json', 'one JSON object on stdout')
  .action(main)
  .parseAsync();

async function main({ json, asleep, waiting, sleep }: Options): Promise<void> {
  await interruptible('stopping the fleet and removing its sandboxes', async (signal) => {
    const fleet: Fleet = { asleep, waiting, sleepSec: sleep };
    const figures = fleetFiguresOf(await observeFleet(fleet, signal));
    if (json) printJson(figures);
    else print(fleetReport(figures));
  });
}

interface Options {
  readonly asleep: number;
  readonly waiting: number;
  readonly sleep: number;
  readonly json?: true;
}
