import type { Command } from 'commander';
import { capacityWarning, rolloutsThatFit } from '../../../infra/machine/rollouts-that-fit.ts';
import type { PartStatus } from '../../up/part.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, type HomeOption, stackCommand } from '../stack/command.ts';
import { UsageError } from '../text/errors.ts';
import { note, print, table } from '../text/output.ts';

interface UpOptions extends HomeOption {
  readonly port?: string;
}

export function upCommand(): Command {
  return stackCommand(
    'up',
    "Runs this machine's stack until Ctrl-C: Temporal server, policy server, gateway and workers. Processes that end are restarted.",
    'temper up --port auto',
  )
    .option('--port <auto>', 'auto: choose free ports instead of the configured ones')
    .action(up);
}

async function up(options: UpOptions): Promise<void> {
  if (options.port !== undefined && options.port !== 'auto') {
    throw new UsageError(
      `--port: expected auto, got ${options.port}; to set one port, use TEMPER_TEMPORAL_PORT, TEMPER_UI_PORT or TEMPER_POLICY_PORT`,
    );
  }
  const { startStack } = await import('../../up/start-stack.ts');
  const { withFreePorts } = await import('../../up/ports.ts');
  const wanted = configOf(options);
  const config = options.port === 'auto' ? await withFreePorts(wanted) : wanted;

  const interrupt = onInterrupt('stopping: first the workers, then the servers');
  const restarts = new Map<string, number>();
  const stack = await startStack(
    { config, progress: note, onChange: (parts) => reportRestarts(parts, restarts) },
    interrupt.signal,
  );
  const { addresses } = stack;
  print(
    table(
      ['process', 'pid', 'log'],
      stack.parts().map((part) => [part.name, String(part.pid), part.logFile]),
    ),
  );
  print(`\nTemporal   ${addresses.temporal} (namespace ${addresses.namespace})`);
  if (addresses.ui !== null) print(`UI         ${addresses.ui}`);
  if (addresses.policy !== null) print(`policy     ${addresses.policy}`);
  const warning = capacityWarning(config.capacity, rolloutsThatFit(config));
  if (warning !== null) note(`warning: ${warning}`);
  print(`home       ${config.home}\n\nPress Ctrl-C to stop.`);

  await interrupt.first;
  await stack.close();
  interrupt.release();
  note('stopped');
}

function reportRestarts(parts: readonly PartStatus[], seen: Map<string, number>): void {
  for (const { name, restarts, lastExit, logFile } of parts) {
    if (restarts <= (seen.get(name) ?? 0)) continue;
    seen.set(name, restarts);
    note(`${name} ended (${lastExit}); restart ${restarts}; log: ${logFile}`);
  }
}
