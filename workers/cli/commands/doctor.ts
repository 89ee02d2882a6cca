import type { Command } from 'commander';
import { type JsonOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { Unsuccessful } from '../text/errors.ts';
import { live, print, printJson } from '../text/output.ts';
import type { Check, RunChecks } from './doctor/checks.ts';

interface DoctorOptions extends JsonOption {
  readonly register?: true;
  readonly model?: string;
}

const marks = { ok: '✓', warn: '!', missing: '✗' } as const satisfies Record<Check['state'], string>;

/** The checks of each subject, in the order of the report. */
const subjects: Readonly<Record<string, () => Promise<RunChecks>>> = {
  'this machine': async () => (await import('./doctor/machine.ts')).checkMachine,
  'files with secrets': async () => (await import('./doctor/checks.ts')).checkKeyFiles,
  'the store': async () => (await import('./doctor/store.ts')).checkStore,
  'what the stack keeps': async () => (await import('./doctor/sizes.ts')).checkSizes,
  sandboxes: async () => (await import('./doctor/sandboxes.ts')).checkSandboxes,
  agents: async () => (await import('./doctor/checks.ts')).checkAgents,
  Temporal: async () => (await import('./doctor/temporal.ts')).checkTemporal,
  'the processes of the stack': async () => (await import('./doctor/stack.ts')).checkStack,
  hosts: async () => (await import('./doctor/hosts.ts')).checkHosts,
  'the model': async () => (await import('./doctor/checks.ts')).checkModel,
};

export function doctorCommand(): Command {
  return stackCommand(
    'doctor',
    'Checks this machine, its sandboxes and the running stack, and says how to fix what is missing.',
    'temper doctor',
  )
    .option(
      '--register',
      'first register the search attributes on the Temporal server, and make its namespace that of the stack',
    )
    .option('--model <dir>', 'also check how the gateway renders and continues the model in this directory')
    .option('--json', 'print one JSON object per check to stdout')
    .action(doctor);
}

async function doctor(options: DoctorOptions): Promise<void> {
  const config = await runningConfigOf(options);
  const missing: string[] = [];
  for (const [subject, load] of Object.entries(subjects)) {
    live(`checking ${subject}`);
    const check = await load();
    for await (const result of check(config, { register: options.register === true, model: options.model })) {
      if (options.json) printJson(result);
      else print(checkText(result));
      if (result.state === 'missing') missing.push(result.name);
    }
  }
  live('');
  if (missing.length > 0) throw new Unsuccessful(`missing: ${missing.join(', ')}`);
}

function checkText({ name, state, found, remedy }: Check): string {
  const line = `${marks[state]} ${name.padEnd(18)} ${found}`;
  return remedy === null ? line : `${line}\n  ${' '.repeat(18)} → ${remedy}`;
}
