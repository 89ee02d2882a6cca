import type { Command } from 'commander';
import { capacityWarning, rolloutsThatFit } from '../../../infra/machine/rollouts-that-fit.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { kindOf, type PartKind, type PartName, type PartStatus, partKinds } from '../../up/part.ts';
import type { StackAddresses } from '../../up/up-file.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, type JsonOption, namesAmong, stackCommand } from '../stack/command.ts';
import { UsageError } from '../text/errors.ts';
import { note, print, printJson, table } from '../text/output.ts';

interface UpOptions extends JsonOption {
  readonly detach?: true;
  readonly port?: string;
  readonly parts?: readonly PartKind[];
}

export function upCommand(): Command {
  return stackCommand(
    'up',
    "Runs this machine's part of a stack until Ctrl-C, or in the background: Temporal server, policy server, gateway and workers. Processes that end are restarted.",
    'temper up --port auto',
  )
    .option('-d, --detach', 'return when the stack runs or has failed; it runs on until `temper down`')
    .option('--port <auto>', 'auto: choose free ports instead of the configured ones')
    .option(
      '--parts <list>',
      'run only these parts, such as `gateway,host` on a host of a fleet (default: all that this machine needs)',
      namesAmong(partKinds),
    )
    .option('--json', 'print one JSON object to stdout when the stack runs')
    .action(up);
}

async function up(options: UpOptions): Promise<void> {
  if (options.port !== undefined && options.port !== 'auto') {
    throw new UsageError(
      `--port: expected auto, got ${options.port}; to set one port, use TEMPER_TEMPORAL_PORT, TEMPER_UI_PORT or TEMPER_POLICY_PORT`,
    );
  }
  if (options.detach) return upDetached(options);
  const { startStack } = await import('../../up/start-stack.ts');
  const { withFreePorts } = await import('../../up/ports.ts');
  const wanted = configOf(options);
  const config = options.port === 'auto' ? await withFreePorts(wanted) : wanted;

  const interrupt = onInterrupt('stopping: first the workers, then the servers');
  const restarts = new Map<string, number>();
  const stack = await startStack(
    {
      config,
      parts: await partsOf(config, options.parts),
      progress: note,
      onChange: (parts) => reportRestarts(parts, restarts),
    },
    interrupt.signal,
  );
  const { addresses } = stack;
  printStack({ parts: stack.parts(), addresses, config, last: 'Press Ctrl-C to stop.' }, options);

  await interrupt.first;
  await stack.close();
  interrupt.release();
  note('stopped');
}

async function upDetached(options: UpOptions): Promise<void> {
  const { startDetached } = await import('./up/detach.ts');
  const config = configOf(options);
  const interrupt = onInterrupt('stopping the stack, which has not started yet');
  await partsOf(config, options.parts);
  const further = [
    ...(options.port === undefined ? [] : ['--port', options.port]),
    ...(options.parts === undefined ? [] : ['--parts', options.parts.join(',')]),
  ];
  const { parts, addresses } = await startDetached(config, { signal: interrupt.signal, further });
  interrupt.release();
  const rows = parts.map(({ name, process: part, logFile }) => ({ name, pid: part?.pid ?? null, logFile }));
  const home = options.home === undefined ? '' : ` --home ${options.home}`;
  const last = `The stack runs in the background. See \`temper logs -f${home}\`; stop it with \`temper down${home}\`.`;
  printStack({ parts: rows, addresses, config, last }, options);
}

/** Returns the parts to run: those of the kinds, of which this machine must be able to run each. */
async function partsOf(config: Config, kinds: readonly PartKind[] | undefined): Promise<readonly PartName[]> {
  const { neededParts } = await import('../../up/part-table.ts');
  const needed = neededParts(config);
  const absent = kinds?.find((kind) => !needed.some((name) => kindOf(name) === kind));
  if (absent !== undefined) {
    throw new UsageError(
      `--parts: expected parts of this machine, got ${absent}; the settings name another ${absent} server`,
    );
  }
  return needed.filter((name) => kinds?.includes(kindOf(name)) ?? true);
}

interface RunningStack {
  readonly parts: readonly Pick<PartStatus, 'name' | 'pid' | 'logFile'>[];
  readonly addresses: StackAddresses;
  readonly config: Config;
  /** The next steps for the user. */
  readonly last: string;
}

function printStack({ parts, addresses, config, last }: RunningStack, { json }: JsonOption): void {
  const rows = parts.map(({ name, pid, logFile }) => ({ name, pid, logFile }));
  if (json) printJson({ home: config.home, addresses, parts: rows });
  else {
    print(stackText(rows, addresses, config));
    note(`\n${last}`);
  }
  const hasHost = parts.some(({ name }) => name === 'host');
  const warning = hasHost ? capacityWarning(config.capacity, rolloutsThatFit(config)) : null;
  if (warning !== null) note(`warning: ${warning}`);
}

function stackText(
  parts: RunningStack['parts'],
  { temporal, namespace, ui, policy }: StackAddresses,
  { home }: Config,
): string {
  const rows = parts.map(({ name, pid, logFile }) => [name, String(pid), logFile]);
  return [
    `${table(['process', 'pid', 'log'], rows)}\n`,
    `Temporal   ${temporal} (namespace ${namespace})`,
    ...(ui === null ? [] : [`UI         ${ui}`]),
    ...(policy === null ? [] : [`policy     ${policy}`]),
    `home       ${home}`,
  ].join('\n');
}

function reportRestarts(parts: readonly PartStatus[], seen: Map<string, number>): void {
  for (const { name, restarts, lastExit, logFile } of parts) {
    if (restarts <= (seen.get(name) ?? 0)) continue;
    seen.set(name, restarts);
    note(`${name} ended (${lastExit}); restart ${restarts}; log: ${logFile}`);
  }
}
