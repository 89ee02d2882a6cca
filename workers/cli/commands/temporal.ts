import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Command } from 'commander';
import { configuredTarget } from '../../../infra/temporal/connection.ts';
import { locateTemporal } from '../../../infra/temporal/executable.ts';
import { temporalTarget } from '../../../infra/temporal/temporal-target.ts';
import { type HomeOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { note } from '../text/output.ts';

export function temporalCommand(): Command {
  return stackCommand(
    'temporal',
    "Runs Temporal's own CLI, with the address and the namespace of the stack. Options of this command come first.",
    'temper temporal workflow list --limit 5',
  )
    .argument('<command...>', "a command of Temporal's CLI, with its options")
    .passThroughOptions()
    .action(runTemporal);
}

async function runTemporal(words: readonly string[], options: HomeOption): Promise<void> {
  const config = await runningConfigOf(options);
  const { path } = await locateTemporal({ env: config.env, progress: note });
  const { address, namespace } = temporalTarget(config);
  // The CLI reads the same variables and profiles as temper, so that only the stack's own server has to be named.
  const own = configuredTarget(config.env) === undefined;
  const env = { ...config.env, ...(own && { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace }) };
  const child = spawn(path, words, { stdio: 'inherit', env });
  // A Ctrl-C reaches both processes; the CLI decides how it ends.
  const wait = (): void => undefined;
  process.on('SIGINT', wait);
  const [code] = await once(child, 'exit');
  process.off('SIGINT', wait);
  if (code !== 0) process.exit(code ?? 1);
}
