import { CommanderError } from 'commander';
import { readConfig } from '../../infra/config.ts';
import { buildProgram } from './program.ts';
import { describeError, exitCodeOf, exitCodes } from './text/errors.ts';
import { note } from './text/output.ts';

/** Runs one command line. Returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
export async function runCli(args: readonly string[]): Promise<number> {
  try {
    const called = args.find((argument) => !argument.startsWith('-'));
    const program = await buildProgram(called === 'help' ? args[1] : called);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return reportCommanderError(error, args);
    note(`temper: ${describeError(error, showsStackTraces())}`);
    return exitCodeOf(error);
  }
}

/** Reports an error of commander, which ends help and version as errors too, and returns the exit code. */
function reportCommanderError(error: CommanderError, args: readonly string[]): number {
  if (error.exitCode === 0 || error.code === 'commander.help') return error.exitCode === 0 ? 0 : exitCodes.usage;
  const [name = '-'] = args;
  const isKnown = !name.startsWith('-') && !error.message.startsWith(`error: unknown command '${name}'`);
  const command = isKnown ? `temper ${name}` : 'temper';
  note(`temper: ${error.message.replace(/^error: /, '').replace(/\.$/, '')}; see ${command} --help`);
  return exitCodes.usage;
}

function showsStackTraces(): boolean {
  try {
    return readConfig().logLevel === 'debug';
  } catch {
    return false; // the settings are invalid, as the message says
  }
}
