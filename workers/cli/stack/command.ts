import { Command, InvalidArgumentError } from 'commander';
import { type Config, readConfig, readConfigWith } from '../../../infra/config.ts';
import { isUp, readUpFile } from '../../up/up-file.ts';
import { UsageError } from '../text/errors.ts';

/** A command on a stack: `--home` names it, and the help ends with an example that can be pasted. */
export function stackCommand(name: string, description: string, example: string): Command {
  return new Command(name)
    .description(description)
    .option('--home <dir>', "directory of the stack (default: TEMPER_HOME, else the user's state directory)")
    .addHelpText('after', `\nExample:\n  $ ${example}`);
}

export interface HomeOption {
  readonly home?: string;
}

/** The settings of a stack that this process is to start. */
export function configOf({ home }: HomeOption): Config {
  return usage(() => (home === undefined ? readConfig() : readConfigWith({ TEMPER_HOME: home })));
}

/** The settings of the stack that runs on this home: where it runs on other ports, those. */
export async function runningConfigOf(options: HomeOption): Promise<Config> {
  const config = configOf(options);
  const up = await readUpFile(config.paths.up);
  if (up === null || !isUp(up)) return config;
  return readConfigWith({
    TEMPER_HOME: config.home,
    TEMPER_TEMPORAL_PORT: String(up.ports.temporal),
    TEMPER_UI_PORT: String(up.ports.ui),
    TEMPER_POLICY_PORT: String(up.ports.policy),
  });
}

/** For commander's options: a whole number with bounds. */
export function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

function usage<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
