import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { type PackagedAgent, packagedAgents } from '../../../infra/agents/packages.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, type JsonOption, namesAmong, stackCommand, wholeNumber } from '../stack/command.ts';
import { Interrupted, UsageError } from '../text/errors.ts';
import { live, note, print, printJson } from '../text/output.ts';

interface TemplateOptions extends JsonOption {
  readonly agents?: readonly PackagedAgent[];
  readonly cpus: number;
  readonly memoryMb: number;
  readonly name?: string;
}

export function e2bCommand(): Command {
  const template = stackCommand(
    'template',
    'Has the E2B server build the template of an image, with Node and the programs of agents in it. Repeat it after an upgrade of temper.',
    'temper e2b template ghcr.io/you/task:1 --agents codex,opencode --cpus 2 --memory-mb 4096',
  )
    .argument('<image>', 'image that the server can pull')
    .option(
      '--agents <list>',
      `agents whose programs it holds, some of ${packagedAgents.join(', ')}, separated by commas (default: none)`,
      namesAmong(packagedAgents),
    )
    .option('--cpus <n>', "CPUs of the template's sandboxes", wholeNumber(1, 128), 2)
    .option('--memory-mb <n>', "memory of the template's sandboxes", wholeNumber(128, 1_048_576), 4_096)
    .option('--name <name>', 'name of the template (default: the one by which rollouts look for it)')
    .option('--json', 'print one JSON object to stdout')
    .action(buildOne);
  return new Command('e2b').description('Prepares an E2B server.').addCommand(template);
}

async function buildOne(image: string, options: TemplateOptions): Promise<void> {
  const { writePrograms } = await import('../../../infra/agents/write-programs.ts');
  const { buildTemplate } = await import('../../../infra/sandbox/e2b/build-template.ts');
  const { templateNameOf } = await import('../../../infra/sandbox/e2b/templates.ts');
  const { e2b, cacheDir } = configOf(options);
  if (e2b === null) throw new UsageError('expected E2B_API_KEY or E2B_API_KEY_FILE, got neither');
  const name = options.name ?? templateNameOf(image);
  const directory = await mkdtemp(join(tmpdir(), 'temper-e2b-'));
  const interrupt = onInterrupt('ending; the server may finish what it has begun');
  try {
    const programs = join(directory, 'programs');
    live('collecting programs');
    await writePrograms(programs, options.agents ?? [], cacheDir);
    const size = { cpus: options.cpus, memoryMb: options.memoryMb };
    live('');
    await buildTemplate(e2b, { name, image, programs, ...size }, note, interrupt.signal);
    if (options.json) printJson({ template: name, image, ...size });
    else print(`template ${name} is ready`);
  } catch (error) {
    throw interrupt.signal.aborted ? new Interrupted('interrupted; run the same command again') : error;
  } finally {
    live('');
    interrupt.release();
    await rm(directory, { recursive: true, force: true });
  }
}
