import { Command, type CommanderError } from 'commander';
import { packageVersion } from '../../infra/package-version.ts';

interface CommandEntry {
  /** One line for `temper --help`; the command's own help says more. */
  readonly description: string;
  /** Imports the command when it is called, so that each process of a stack loads only what it needs. */
  load(): Promise<Command>;
}

/** All commands, in the order in which a new user meets them. */
const commands: Readonly<Record<string, CommandEntry>> = {
  demo: {
    description: 'train a small policy on this machine and write a report',
    load: async () => (await import('./commands/demo.ts')).demoCommand(),
  },
  up: {
    description: "run this machine's stack until Ctrl-C, or in the background",
    load: async () => (await import('./commands/up.ts')).upCommand(),
  },
  down: {
    description: 'stop the stack of a home',
    load: async () => (await import('./commands/down.ts')).downCommand(),
  },
  logs: {
    description: "show the logs of a stack's processes",
    load: async () => (await import('./commands/logs.ts')).logsCommand(),
  },
  doctor: {
    description: 'check what is installed and running, and say how to fix what is missing',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand(),
  },
  rollout: {
    description: 'run an agent on tasks, one rollout per task',
    load: async () => (await import('./commands/rollout.ts')).rolloutCommand(),
  },
  train: {
    description: 'start a training run and follow it',
    load: async () => (await import('./commands/train.ts')).trainCommand(),
  },
  eval: {
    description: 'evaluate a policy version; show and compare evaluations',
    load: async () => (await import('./commands/eval.ts')).evalCommand(),
  },
  regrade: {
    description: 'grade the diffs of finished rollouts again',
    load: async () => (await import('./commands/regrade.ts')).regradeCommand(),
  },
  status: {
    description: 'list processes, hosts, runs and rollouts',
    load: async () => (await import('./commands/status.ts')).statusCommand(),
  },
  show: {
    description: 'show a run, rollout, sweep or regrade in full',
    load: async () => (await import('./commands/show.ts')).showCommand(),
  },
  pause: {
    description: 'pause a run, sweep, regrade or rollout',
    load: async () => (await import('./commands/pause-resume-cancel.ts')).pauseCommand(),
  },
  resume: {
    description: 'resume a paused run, sweep, regrade or rollout',
    load: async () => (await import('./commands/pause-resume-cancel.ts')).resumeCommand(),
  },
  cancel: {
    description: 'cancel a run, sweep, regrade or rollout and wait for its clean-up',
    load: async () => (await import('./commands/pause-resume-cancel.ts')).cancelCommand(),
  },
  budget: {
    description: 'show or change the budget of a run or a sweep',
    load: async () => (await import('./commands/budget.ts')).budgetCommand(),
  },
  schedule: {
    description: 'evaluate on a schedule',
    load: async () => (await import('./commands/schedule.ts')).scheduleCommand(),
  },
  report: {
    description: 'write the HTML report of a run',
    load: async () => (await import('./commands/report.ts')).reportCommand(),
  },
  agents: {
    description: 'list the agents, show the options of one',
    load: async () => (await import('./commands/agents.ts')).agentsCommand(),
  },
  tasks: {
    description: 'list and validate tasks, prepare their images',
    load: async () => (await import('./commands/tasks.ts')).tasksCommand(),
  },
  openenv: {
    description: 'serve tasks as an OpenEnv environment',
    load: async () => (await import('./commands/openenv.ts')).openenvCommand(),
  },
  temporal: {
    description: "run Temporal's own CLI with the address and the namespace of a stack",
    load: async () => (await import('./commands/temporal.ts')).temporalCommand(),
  },
  reap: {
    description: 'remove now what dead rollouts left behind',
    load: async () => (await import('./commands/reap.ts')).reapCommand(),
  },
  host: {
    description: 'list the hosts of a stack, take one out of service',
    load: async () => (await import('./commands/host.ts')).hostCommand(),
  },
  store: {
    description: "copy a stack's shared state into a bucket",
    load: async () => (await import('./commands/store.ts')).storeCommand(),
  },
  e2b: {
    description: 'have an E2B server build the template of an image',
    load: async () => (await import('./commands/e2b.ts')).e2bCommand(),
  },
  gc: {
    description: 'remove what nothing needs any more',
    load: async () => (await import('./commands/gc.ts')).gcCommand(),
  },
  worker: {
    description: 'run one worker process: control, host or trainer',
    load: async () => (await import('./commands/worker.ts')).workerCommand(),
  },
  gateway: {
    description: 'run one gateway process',
    load: async () => (await import('./commands/worker.ts')).gatewayCommand(),
  },
  policy: {
    description: 'run the embedded policy server',
    load: async () => (await import('./commands/worker.ts')).policyCommand(),
  },
};

const about = [
  'Trains coding agents by reinforcement learning, durably, on Temporal.',
  'The settings of a stack are TEMPER_* environment variables. temper uses the Temporal server that TEMPORAL_ADDRESS or a profile in temporal.toml names; without one, it starts a dev server of its own.',
].join('\n\n');

export const commandNames: readonly string[] = Object.keys(commands);

/** Builds the program with the called command in full and the other commands as names with descriptions. */
export async function buildProgram(called: string | undefined): Promise<Command> {
  const program = createProgram();
  for (const [name, { description, load }] of Object.entries(commands)) {
    if (name === called) program.addCommand(strict(await load()));
    else program.command(name).description(description).allowUnknownOption();
  }
  return strict(program);
}

/** Builds the program with every command in full, for scripts that walk all commands and options. */
export async function loadAllCommands(): Promise<Command> {
  const program = createProgram();
  for (const { description, load } of Object.values(commands)) program.addCommand((await load()).summary(description));
  return program;
}

function createProgram(): Command {
  return (
    new Command('temper')
      .description(about)
      .version(packageVersion())
      .showSuggestionAfterError()
      // An option belongs to the command that it follows: `eval` and `eval show` share some option names.
      .enablePositionalOptions()
  );
}

/** Makes a command and its subcommands throw their errors, so that `runCli` prints them in one place. */
function strict(command: Command): Command {
  for (const subcommand of command.commands) strict(subcommand);
  return command
    .exitOverride((error: CommanderError) => {
      throw error;
    })
    .configureOutput({ outputError: () => undefined });
}
