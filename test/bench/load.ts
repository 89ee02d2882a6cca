/**
 * Measures a host under the load of many agents: all at work at once, then all at their end at once. A lost rollout, a stage
 * that was tried twice or a slow drain shows here. Run it as root on an idle machine.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { SandboxKind } from '../../infra/sandbox/sandbox.ts';
import { wholeNumber } from '../../workers/cli/stack/command.ts';
import { print, printJson } from '../../workers/cli/text/output.ts';
import { interruptible } from './interruptible.ts';
import { observeCell } from './load/cell.ts';
import { figuresOf, type LoadFigures } from './load/figures.ts';
import { reportText } from './load/report.ts';

interface Options {
  readonly agents: readonly number[];
  readonly sandbox: SandboxKind;
  readonly compared: number;
  readonly sleep: number;
  readonly json?: true;
}

const mostAgents = 10_000;

await new Command('npm run bench:load --')
  .description(
    'Measures many agents that are at work at once and end together: how fast their work is captured, released and evaluated, ' +
      'and what the processes of the stack need meanwhile. Run it as root on an idle machine.',
  )
  .option('--agents <list>', 'numbers of agents, each measured in a stack of its own', numbers, [100, 300, 1000])
  .addOption(new Option('--sandbox <kind>', 'kind of sandbox').choices(['local', 'docker']).default('local'))
  .option('--compared <n>', 'rollouts that are measured four at once', wholeNumber(4, 10_000), 60)
  .option(
    '--sleep <seconds>',
    'time for which the agents sleep, in which waiting is measured',
    wholeNumber(1, 86_400),
    240,
  )
  .option('--json', 'one JSON object per number of agents on stdout')
  .action(main)
  .parseAsync();

async function main({ agents: counts, sandbox, compared, sleep, json }: Options): Promise<void> {
  const measured: LoadFigures[] = [];
  await interruptible('stopping the stack and removing its sandboxes', async (signal) => {
    for (const agents of counts) {
      const figures = figuresOf(await observeCell({ agents, sandbox, compared, sleepSec: sleep }, signal));
      measured.push(figures);
      if (json) printJson(figures);
    }
  });
  if (!json && measured.length > 0) print(reportText(measured));
}

function numbers(text: string): number[] {
  return text.split(',').map((word) => {
    const number = Number(word);
    if (Number.isInteger(number) && number >= 1 && number <= mostAgents) return number;
    throw new InvalidArgumentError(`expected whole numbers from 1 to ${mostAgents}, separated by commas, got ${word}`);
  });
}
