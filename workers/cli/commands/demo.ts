import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { type Config, readConfigWith } from '../../../infra/config.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, type HomeOption, stackCommand, wholeNumber } from '../stack/command.ts';
import { note, print } from '../text/output.ts';

export interface DemoOptions extends HomeOption {
  readonly seed: number;
  readonly out?: string;
  readonly sandbox: 'auto' | 'docker' | 'local';
  readonly steps?: number;
  readonly keepUp?: true;
}

export function demoCommand(): Command {
  return stackCommand(
    'demo',
    'Trains a small policy to mend bugs in generated JavaScript repositories: brings a stack up, evaluates on held-out tasks, trains, evaluates again, writes a report, takes the stack down',
    'temper demo --seed 1 --out ./demo',
  )
    .option('--seed <n>', 'of tasks and weights', wholeNumber(0, 2 ** 31 - 1), 1)
    .option('--out <dir>', 'where report.html and summary.json go (default: temper-demo-<seed>)')
    .addOption(new Option('--sandbox <kind>', 'where agents run').choices(['auto', 'docker', 'local']).default('local'))
    .option('--steps <n>', "instead of the recipe's number of steps", wholeNumber(1, 10_000))
    .option('--keep-up', 'leave the stack up until Ctrl-C, to look around in the Temporal UI')
    .action(demo);
}

async function demo(options: DemoOptions): Promise<void> {
  const { onFreePorts, startSession } = await import('../stack/stack-session.ts');
  const { runDemo } = await import('./demo/run-demo.ts');
  const out = resolve(options.out ?? `temper-demo-${options.seed}`);
  const config = await onFreePorts(demoConfig(options));
  const interrupt = onInterrupt('cancelling the run; waiting until it has cleaned up');
  interrupt.remains(() => `What the run left is removed when a stack is next brought up on ${config.home}.`);
  const session = await startSession(config, interrupt.signal);
  try {
    const ui = session.own?.addresses.ui;
    if (ui) note(`Temporal UI, while it runs: ${ui}`);
    await runDemo(session, options, out, interrupt.signal);
    if (options.keepUp) {
      print(`\nTemporal UI: ${ui ?? session.own?.addresses.temporal}\nCtrl-C takes the stack down.`);
      await interrupt.first;
    } else {
      print(`\nTo look at every rollout of it in the Temporal UI: temper up --home ${config.home}`);
    }
  } finally {
    await session.close();
    interrupt.release();
  }
}

/** A home of its own, so that one demo never meets another's workflows, checkpoints or ports. */
function demoConfig(options: DemoOptions): Config {
  const wanted = configOf(options);
  if (options.home !== undefined || wanted.env.TEMPER_HOME !== undefined) return wanted;
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(/[T:-]/g, '');
  return readConfigWith({ TEMPER_HOME: join(wanted.cacheDir, 'demo', `${stamp}-${options.seed}`) });
}
