import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { type Config, readConfig } from '../../../infra/settings/config.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, sandboxOption, stackCommand, wholeNumber } from '../stack/command.ts';
import { note } from '../text/output.ts';
import { type DemoRecipe, demoRecipe } from './demo/recipe.ts';
import type { DemoOptions } from './demo/run-demo.ts';

export function demoCommand(recipe: DemoRecipe = demoRecipe): Command {
  return stackCommand(
    'demo',
    'Trains a small policy to fix bugs in generated JavaScript repositories. Starts a stack, evaluates on held-out tasks, trains, evaluates again, writes a report, and stops the stack.',
    'temper demo --seed 1 --out ./demo',
  )
    .option('--seed <n>', 'seed for tasks, weight initialisation and sampling', wholeNumber(0, 2 ** 31 - 1), 1)
    .option('--out <dir>', 'directory for report.html and summary.json (default: temper-demo-<seed>)')
    .addOption(sandboxOption().default('local'))
    .option('--steps <n>', 'number of training steps (default: 36)', wholeNumber(1, 10_000))
    .option('--keep-up', 'keep the stack running until Ctrl-C, to look around in the Temporal UI')
    .action((options: DemoOptions) => demo(options, recipe));
}

async function demo(options: DemoOptions, recipe: DemoRecipe): Promise<void> {
  const { startSession } = await import('../stack/stack-session.ts');
  const { runDemo } = await import('./demo/run-demo.ts');
  const out = resolve(options.out ?? `temper-demo-${options.seed}`);
  const config = demoConfig(options);
  const interrupt = onInterrupt('cancelling the run; waiting for its clean-up');
  interrupt.remains(() => `The next stack that starts on ${config.home} removes what the run left behind.`);
  const session = await startSession(config, interrupt.signal);
  try {
    const ui = session.own?.addresses.ui;
    if (ui) note(`Temporal UI while the demo runs: ${ui}`);
    await runDemo(session, { options, recipe }, out, interrupt.signal);
    if (options.keepUp) {
      note(`\nTemporal UI: ${ui ?? session.own?.addresses.temporal}\nPress Ctrl-C to stop the stack.`);
      await interrupt.first;
    } else {
      note(`\nTo look at every rollout in the Temporal UI, run \`temper up --home ${config.home}\``);
    }
  } finally {
    await session.close();
    interrupt.release();
  }
}

/** Gives each demo its own home, so that it shares no workflows, checkpoints or ports with another. */
function demoConfig(options: DemoOptions): Config {
  const wanted = configOf(options);
  if (options.home !== undefined || wanted.env.TEMPER_HOME !== undefined) return wanted;
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(/[T:-]/g, '');
  const home = join(wanted.cacheDir, 'demo', `${stamp}-${options.seed}`);
  // A demo keeps nothing in the store of a stack.
  return readConfig({ ...wanted.env, TEMPER_HOME: home, TEMPER_STORE: undefined });
}
