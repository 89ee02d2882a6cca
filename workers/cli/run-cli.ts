import { CommanderError } from 'commander';
import { readConfig } from '../../infra/config.ts';
import { buildProgram } from './program.ts';
import { describeError, exitCodeOf, exitCodes } from './text/errors.ts';
import { note } from './text/output.ts';

/** Runs one command line. Answers the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
export async function runCli(args: readonly string[]): Promise<number> {
  try {
    const called = args.find((argument) => !argument.startsWith('-'));
    const program = await buildProgram(called === 'help' ? args[1] : called);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return ofCommander(error, args);
    note(`temper: ${describeError(error, wantsStacks())}`);
    return exitCodeOf(error);
  }
}

/** Help and version end like an error, too, there. */
function ofCommander(error: CommanderError, args: readonly string[]): number {
  if (error.exitCode === 0 || error.code === 'commander.help') return error.exitCode === 0 ? 0 : exitCodes.usage;
  const [name = '-'] = args;
  const isKnown = !name.startsWith('-') && !error.message.startsWith(`error: unknown command '${name}'`);
  const command = isKnown ? `temper ${name}` : 'temper';
  note(`temper: ${error.message.replace(/^error: /, '')}; see ${command} --help`);
  return exitCodes.usage;
}

function wantsStacks(): boolean {
  try {
    return readConfig().logLevel === 'debug';
  } catch {
    return false; // the settings are what is wrong, and the message says so
  }
}
