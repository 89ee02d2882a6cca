import type { Command } from 'commander';
import { type HomeOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { Unsuccessful } from '../text/errors.ts';
import { print, printJson } from '../text/output.ts';
import type { Check } from './doctor/check.ts';

interface DoctorOptions extends HomeOption {
  readonly register?: true;
  readonly model?: string;
  readonly json?: true;
}

const marks = { ok: '✓', warn: '!', missing: '✗' } as const satisfies Record<Check['state'], string>;

export function doctorCommand(): Command {
  return stackCommand('doctor', 'Says what is there and what is missing, and what to do about it', 'temper doctor')
    .option('--register', 'register the search attributes on the Temporal server first')
    .option('--model <dir>', 'also say how the gateway would read and continue this model')
    .option('--json', 'one JSON object per check on stdout')
    .action(doctor);
}

async function doctor(options: DoctorOptions): Promise<void> {
  const { checkMachine } = await import('./doctor/machine.ts');
  const { checkSandboxes } = await import('./doctor/sandboxes.ts');
  const { checkAgents } = await import('./doctor/agents.ts');
  const { checkTemporal } = await import('./doctor/temporal.ts');
  const { checkStack } = await import('./doctor/stack.ts');
  const { checkModel } = await import('./doctor/model.ts');
  const config = await runningConfigOf(options);
  const checks: Check[] = [];
  for (const look of [checkMachine, checkSandboxes, checkAgents, checkTemporal, checkStack, checkModel]) {
    for await (const check of look(config, { register: options.register === true, model: options.model })) {
      checks.push(check);
      if (options.json) printJson(check);
      else print(text(check));
    }
  }
  const missing = checks.filter(({ state }) => state === 'missing');
  if (missing.length > 0) {
    throw new Unsuccessful(`missing: ${missing.map(({ name }) => name).join(', ')}`);
  }
}

function text({ name, state, found, remedy }: Check): string {
  const line = `${marks[state]} ${name.padEnd(18)} ${found}`;
  return remedy === null ? line : `${line}\n  ${' '.repeat(18)} → ${remedy}`;
}
