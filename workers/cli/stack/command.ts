import { Command, InvalidArgumentError, Option } from 'commander';
import { type Config, readConfig, readConfigWith } from '../../../infra/settings/config.ts';
import { storeVariables } from '../../../infra/settings/environment.ts';
import { sandboxChoices } from '../../../workflows/contracts/sandbox-kinds.ts';
import { isUp, readUpFile } from '../../up/up-file.ts';
import { orUsageError } from '../text/errors.ts';

const examples = new WeakMap<Command, string>();

/** Creates a command that works on a stack: it has `--home`, and its help ends with an example to paste. */
export function stackCommand(name: string, description: string, example: string): Command {
  const command = new Command(name)
    .description(description)
    .option(
      '--home <dir>',
      "directory of the stack (default: TEMPER_HOME, else below the user's state directory)",
      directory,
    )
    .addHelpText('after', `\nExample:\n  $ ${example}`);
  examples.set(command, example);
  return command;
}

/** The command line that the help of a command ends with. */
export const exampleOf = (command: Command): string | undefined => examples.get(command);

export interface HomeOption {
  readonly home?: string;
}

/** The options of a command on a stack that can print its result as JSON. */
export interface JsonOption extends HomeOption {
  readonly json?: true;
}

/** Reads the settings of a stack as the environment has them: those of one that this process starts. */
export function configOf({ home }: HomeOption): Config {
  return orUsageError(() => (home === undefined ? readConfig() : readConfigWith({ TEMPER_HOME: home })));
}

/** Reads the settings of the stack that runs on this home, with the ports, the store, the modules, the network and the name of the host that it actually uses. */
export async function runningConfigOf(options: HomeOption): Promise<Config> {
  const config = configOf(options);
  const up = await readUpFile(config.paths.up);
  if (up === null || !isUp(up)) return config;
  return readConfigWith({
    ...Object.fromEntries(storeVariables.map((name) => [name, up.store[name]])),
    ...up.modules,
    ...(up.host !== undefined && { TEMPER_HOST: up.host }),
    TEMPER_NETWORK: up.network,
    TEMPER_HOME: config.home,
    TEMPER_TEMPORAL_PORT: String(up.ports.temporal),
    TEMPER_UI_PORT: String(up.ports.ui),
    TEMPER_POLICY_PORT: String(up.ports.policy),
  });
}

/** Creates the `--sandbox` option that commands on rollouts share. */
export const sandboxOption = (): Option =>
  new Option('--sandbox <kind>', 'kind of sandbox for agent and tests').choices(sandboxChoices);

/** Parses the value of a commander option as names of known things, separated by commas. */
export function namesAmong<Name extends string>(known: readonly Name[]): (value: string) => readonly Name[] {
  return (value) =>
    value.split(',').map((word) => {
      const name = known.find((one) => one === word);
      if (name !== undefined) return name;
      throw new InvalidArgumentError(`expected some of ${known.join(', ')}, separated by commas, got ${word}`);
    });
}

/** Parses the value of a commander option as a whole number within bounds. */
export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

/** Parses the value of a commander option as a number within bounds. */
export function numberWithin(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^(\d+\.?\d*|\.\d+)$/.test(value) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Expected a number from ${min} to ${max}.`);
  };
}

function directory(value: string): string {
  if (value !== '') return value;
  throw new InvalidArgumentError('Expected a directory.');
}
