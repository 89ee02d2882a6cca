import { Argument, type Command, InvalidArgumentError } from 'commander';
import type { Config } from '../../../infra/settings/config.ts';
import { configOf, type HomeOption, stackCommand } from '../stack/command.ts';

/**
 * A process of the stack, as workers/{control,host,trainer,gateway,policy}.ts export it: it drains and resolves once
 * the signal aborts.
 */
type RunPart = (config: Config, signal: AbortSignal) => Promise<void>;

/** Time after which a part that drains exits anyway; by then the supervisor has exited or killed the part. */
const lastResortMs = 30_000;

interface PartOptions extends HomeOption {
  readonly tethered?: true;
}

/** Kinds of worker, each imported when it runs: a host worker, for example, needs no workflow bundle. */
const workers: Readonly<Record<string, () => Promise<RunPart>>> = {
  control: async () => (await import('../../control.ts')).runControl,
  host: async () => (await import('../../host.ts')).runHost,
  trainer: async () => (await import('../../trainer.ts')).runTrainer,
};

export function workerCommand(): Command {
  const kind = new Argument('<kind>', 'kind of worker').choices(Object.keys(workers));
  return partCommand('worker', 'Runs one worker process against a Temporal server.', 'temper worker host')
    .addArgument(kind)
    .action(async (name: string, options: PartOptions) => {
      const load = workers[name];
      if (load === undefined) throw new Error(`unknown kind of worker: ${name}`);
      await runPart(await load(), configOf(options), options.tethered === true);
    });
}

export function gatewayCommand(): Command {
  return partCommand('gateway', "Runs one gateway process, which answers the agents' model calls.", 'temper gateway')
    .option(
      '--name <name>',
      'name of this process among several gateways (TEMPER_GATEWAYS): gateway, gateway-1 and so on',
      gatewayName,
      'gateway',
    )
    .action(async ({ name, ...options }: PartOptions & { readonly name: string }) => {
      const { runGateway } = await import('../../gateway.ts');
      const run: RunPart = (config, signal) => runGateway(config, signal, name);
      await runPart(run, configOf(options), options.tethered === true);
    });
}

export function policyCommand(): Command {
  return partCommand(
    'policy',
    'Runs the embedded policy server: engine and trainer, both on the CPU.',
    'temper policy',
  ).action(async (options: PartOptions) =>
    runPart((await import('../../policy.ts')).runPolicy, configOf(options), options.tethered === true),
  );
}

function gatewayName(value: string): string {
  if (/^gateway(-[1-9]\d?)?$/.test(value)) return value;
  throw new InvalidArgumentError('Expected gateway, gateway-1, gateway-2, …');
}

function partCommand(name: string, description: string, example: string): Command {
  return stackCommand(name, description, example).option('--tethered', 'exit when stdin closes');
}

/**
 * Runs one process of the stack until SIGTERM, Ctrl-C or, if it is tethered, the end of its stdin, by which it notices
 * that its supervisor was killed. A second request ends it at once.
 */
async function runPart(run: RunPart, config: Config, tethered: boolean): Promise<void> {
  const ending = new AbortController();
  const end = (): void => {
    if (ending.signal.aborted) process.exit(1);
    ending.abort();
    setTimeout(() => process.exit(1), lastResortMs).unref();
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  if (tethered) {
    process.stdin.on('end', end);
    process.stdin.on('error', end);
    process.stdin.resume();
  }
  try {
    await run(config, ending.signal);
  } finally {
    process.stdin.pause();
    process.off('SIGTERM', end);
    process.off('SIGINT', end);
  }
}
