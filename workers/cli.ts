#!/usr/bin/env node
import { CommanderError } from 'commander';
import { calledAs } from '../infra/process/called-as.ts';
import { readConfig } from '../infra/settings/config.ts';
import { buildProgram } from './cli/program.ts';
import { describeError, exitCodeOf, exitCodes, interruptOr } from './cli/text/errors.ts';
import { live, note } from './cli/text/output.ts';

/** Time for pending output. After it the program exits, even if a library has left a handle open. */
const flushMs = 2_000;

// A reader such as `head` may close the pipe early; that is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
}

process.exitCode = await runCli(process.argv.slice(2));
setTimeout(() => process.exit(), flushMs).unref();

/** Runs one command line. Returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted. */
async function runCli(args: readonly string[]): Promise<number> {
  try {
    const called = args.find((argument) => !argument.startsWith('-'));
    const program = await buildProgram(called === 'help' ? args[1] : called);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    // The line about what was in progress must not stay below the error.
    live('');
    if (error instanceof CommanderError) return reportCommanderError(error, args);
    const reported = interruptOr(error);
    note(`temper: ${describeError(reported, showsStackTraces())}`);
    return exitCodeOf(reported);
  }
}

/** Reports an error of commander, which ends help and version as errors too, and returns the exit code. */
function reportCommanderError(error: CommanderError, args: readonly string[]): number {
  if (error.exitCode === 0 || error.code === 'commander.help') return error.exitCode === 0 ? 0 : exitCodes.usage;
  const [name = '-'] = args;
  const isKnown = !name.startsWith('-') && !error.message.startsWith(`error: unknown command '${name}'`);
  const command = isKnown ? `${calledAs()} ${name}` : calledAs();
  const message = (nearRequired(error.message, args) ?? error.message)
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.+)\?\)$/, ', did you mean $1?')
    .replace(/\.$/, '');
  note(`temper: ${message}; see ${command} --help`);
  return exitCodes.usage;
}

/** Describes an option that is nearly the required one. Commander looks for missing options first, and calls that one missing. */
function nearRequired(message: string, args: readonly string[]): string | undefined {
  const required = /^error: required option '(--[a-z-]+)/.exec(message)?.[1];
  if (required === undefined) return undefined;
  const options = args.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '');
  const near = options.find((one) => one.length > 2 && (required.startsWith(one) || one.startsWith(required)));
  return near === undefined ? undefined : `unknown option '${near}', did you mean ${required}?`;
}

function showsStackTraces(): boolean {
  try {
    return readConfig().logLevel === 'debug';
  } catch {
    return false; // the settings are invalid, as the message says
  }
}
