import { Argument, type Command, InvalidArgumentError } from 'commander';
import { configOf, type HomeOption, stackCommand } from '../stack/command.ts';
import { type RunPart, runPart } from '../stack/run-part.ts';

interface PartOptions extends HomeOption {
  readonly tethered?: true;
}

/** Loaded one by one: a host worker needs no workflow bundle, a gateway no worker. */
const workers: Readonly<Record<string, () => Promise<RunPart>>> = {
  control: async () => (await import('../../control.ts')).runControl,
  host: async () => (await import('../../host.ts')).runHost,
  trainer: async () => (await import('../../trainer.ts')).runTrainer,
};

export function workerCommand(): Command {
  const kind = new Argument('<kind>', 'which worker').choices(Object.keys(workers));
  return partCommand('worker', 'Runs one worker against a Temporal server', 'temper worker host')
    .addArgument(kind)
    .action(async (name: string, options: PartOptions) => {
      const load = workers[name];
      if (load === undefined) throw new Error(`expected a known worker, got ${name}`);
      await runPart(await load(), configOf(options), options.tethered === true);
    });
}

export function gatewayCommand(): Command {
  return partCommand('gateway', "Runs the gateway: the agents' model calls go through it", 'temper gateway')
    .option(
      '--name <name>',
      'of this process, where several share the sessions (TEMPER_GATEWAYS): gateway, gateway-1, ...',
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
    'Runs the embedded policy server: engine and trainer on the CPU',
    'temper policy',
  ).action(async (options: PartOptions) =>
    runPart((await import('../../policy.ts')).runPolicy, configOf(options), options.tethered === true),
  );
}

function gatewayName(value: string): string {
  if (/^gateway(-[1-9]\d?)?$/.test(value)) return value;
  throw new InvalidArgumentError('expected gateway, gateway-1, gateway-2, ...');
}

function partCommand(name: string, description: string, example: string): Command {
  return stackCommand(name, description, example).option('--tethered', 'end when stdin does');
}
