import { Command, type CommanderError } from 'commander';
import { packageVersion } from './version.ts';

interface CommandEntry {
  readonly description: string;
  /** Loaded when it is called: each process of a stack starts with only what it needs. */
  load(): Promise<Command>;
}

/** In the order in which people meet them. */
const commands: Readonly<Record<string, CommandEntry>> = {
  demo: entry('train a policy on this machine, with a report at the end', async () =>
    (await import('./commands/demo.ts')).demoCommand(),
  ),
  up: entry('run the stack of one machine', async () => (await import('./commands/up.ts')).upCommand()),
  doctor: entry('say what is there and what is missing', async () =>
    (await import('./commands/doctor.ts')).doctorCommand(),
  ),
  rollout: entry('run an agent on tasks', async () => (await import('./commands/rollout.ts')).rolloutCommand()),
  train: entry('start a training run and follow it', async () => (await import('./commands/train.ts')).trainCommand()),
  eval: entry('evaluate a policy version; show and compare evaluations', async () =>
    (await import('./commands/eval.ts')).evalCommand(),
  ),
  regrade: entry('grade rollouts again that have ended', async () =>
    (await import('./commands/regrade.ts')).regradeCommand(),
  ),
  status: entry('list runs and rollouts', async () => (await import('./commands/status.ts')).statusCommand()),
  show: entry('show one of them in full', async () => (await import('./commands/show.ts')).showCommand()),
  pause: entry('pause a run, a sweep or a rollout', async () => (await import('./commands/pause.ts')).pauseCommand()),
  resume: entry('let it go on', async () => (await import('./commands/resume.ts')).resumeCommand()),
  cancel: entry('cancel it, and wait until it has cleaned up', async () =>
    (await import('./commands/cancel.ts')).cancelCommand(),
  ),
  schedule: entry('evaluate on a schedule', async () => (await import('./commands/schedule.ts')).scheduleCommand()),
  report: entry('write the report of a run', async () => (await import('./commands/report.ts')).reportCommand()),
  tasks: entry('list, validate and add tasks', async () => (await import('./commands/tasks.ts')).tasksCommand()),
  reap: entry('remove what dead rollouts left', async () => (await import('./commands/reap.ts')).reapCommand()),
  worker: entry('run one worker: control, host or trainer', async () =>
    (await import('./commands/worker.ts')).workerCommand(),
  ),
  gateway: entry('run the gateway', async () => (await import('./commands/worker.ts')).gatewayCommand()),
  policy: entry('run the embedded policy server', async () => (await import('./commands/worker.ts')).policyCommand()),
};

export const commandNames: readonly string[] = Object.keys(commands);

function entry(description: string, load: () => Promise<Command>): CommandEntry {
  return { description, load };
}

const about = `Trains coding agents by reinforcement learning, durably, on Temporal.

Settings of a stack are TEMPER_* variables; see docs/operations.md. Where Temporal is: TEMPORAL_ADDRESS or a profile of
temporal.toml, else the dev server that temper starts.`;

/** The program with the called command in full; of the others only what the list of commands shows. */
export async function buildProgram(called: string | undefined): Promise<Command> {
  const program = new Command('temper').description(about).version(packageVersion()).showSuggestionAfterError();
  for (const [name, { description, load }] of Object.entries(commands)) {
    if (name === called) program.addCommand(strict(await load()));
    else program.command(name).description(description).allowUnknownOption();
  }
  // An option belongs to the command that it stands behind: `eval` and `eval show` have some of the same name.
  return strict(program.enablePositionalOptions());
}

/** Errors are thrown to the one place that prints them. */
function strict(command: Command): Command {
  for (const below of command.commands) strict(below);
  return command
    .exitOverride((error: CommanderError) => {
      throw error;
    })
    .configureOutput({ outputError: () => undefined });
}
