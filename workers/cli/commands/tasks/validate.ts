import type { Command } from 'commander';
import type { SandboxChoice } from '../../../../workflows/contracts/sandbox-kinds.ts';
import { onInterrupt } from '../../follow/interrupt.ts';
import { type NetworkOptions, offlineTestsOption } from '../../follow/network-options.ts';
import { type JsonOption, sandboxOption, stackCommand, wholeNumber } from '../../stack/command.ts';
import { Interrupted, Unsuccessful } from '../../text/errors.ts';
import { lostImages } from '../../text/local-images.ts';
import { counted, live, note, print, printJson, table } from '../../text/output.ts';
import type { RolloutRow } from '../rollout/rollout-row.ts';
import type { Validation } from './validate-tasks.ts';

interface ValidateOptions extends JsonOption, Pick<NetworkOptions, 'offlineTests'> {
  readonly sandbox: SandboxChoice;
  readonly concurrency?: number;
  readonly repeat: number;
  readonly again?: true;
  readonly offline?: true;
  readonly up: boolean;
}

export function validateCommand(): Command {
  return stackCommand(
    'validate',
    'Checks that the reference solution solves each task of a set and that doing nothing does not.',
    'temper tasks validate ./tasks --sandbox docker',
  )
    .argument('<set>', 'finite task set (generated:test/1?count=8), data set or directory')
    .addOption(sandboxOption().default('auto'))
    .addOption(offlineTestsOption())
    .option('--concurrency <n>', 'tasks validated at once (default: the capacity of this host)', wholeNumber(1, 500))
    .option('--repeat <n>', 'rollouts of each agent, to reveal flaky tests', wholeNumber(1, 100), 1)
    .option('--again', 'repeat all rollouts instead of reusing the scores of an earlier validation')
    .option('--json', 'print one JSON object per task to stdout')
    .option('--offline', 'download nothing; fail and name what is missing')
    .option('--no-up', 'fail if no stack is running, instead of starting one for this command')
    .action(validate);
}

async function validate(named: string, options: ValidateOptions): Promise<void> {
  const { openSession } = await import('../../stack/stack-session.ts');
  const { openTaskSource, requireTasks } = await import('../../stack/task-source.ts');
  const { createQuarantine } = await import('../../../../infra/tasks/quarantine.ts');
  const { validateTasks } = await import('./validate-tasks.ts');
  await requireTasks(named);
  const interrupt = onInterrupt('cancelling the rollouts; waiting for their clean-up');
  const session = await openSession(options, options.up, interrupt.signal);
  const invalid: Validation[] = [];
  const valid: string[] = [];
  const images = new Set<string>();
  let ended = 0;
  const finish = (validation: Validation): void => {
    ended += 1;
    if (validation.image !== null) images.add(validation.image);
    if (validation.packed !== null && validation.valid) valid.push(validation.packed);
    else invalid.push(validation);
    if (options.json) printJson(validation);
    else if (!validation.valid) note(`${validation.task}  ${validation.why}`);
    if (validation.givingUp !== null) note(`${validation.task}  rewards giving up: ${validation.givingUp}`);
    live(`${ended} validated · ${invalid.length} invalid`);
  };
  try {
    const { config, store, client, shared } = session;
    const { tasks, address } = await openTaskSource(named, { config, store, offline: options.offline === true });
    const concurrency = options.concurrency ?? config.capacity;
    const { sandbox, repeat, again = false, offlineTests } = options;
    const work = { sandbox, concurrency, repeat, again, offlineTests, finish };
    const quarantine = createQuarantine(shared.common);
    live('validating the first tasks');
    await validateTasks(client, tasks.scan(address), work, interrupt.signal);
    live('');
    const lost = lostImages(sandbox, config.sandbox, images);
    if (lost !== null) note(lost);
    for (const { task, address: found, packed, flaky: evidence } of invalid) {
      if (evidence.length === 0 || packed === null) continue;
      await quarantine.add({ task, addresses: [found, packed], evidence });
      note(
        `quarantined ${task}: evaluations of the same diff disagree; run \`temper tasks release ${task}\` to restore it`,
      );
    }
    if (!options.json) print(summary(ended, invalid));
    if (!interrupt.signal.aborted && valid.length > 0 && invalid.length > 0) {
      note(`the valid tasks are packed as the set blob:${(await store.putJson(valid)).digest}`);
    }
  } finally {
    if (session.own !== null) note('stopping the stack');
    await session.close();
    interrupt.release();
  }
  if (interrupt.signal.aborted) {
    throw new Interrupted(
      `interrupted after ${counted(ended, 'task')}; run the same command again to continue with the others`,
    );
  }
  if (invalid.length > 0) throw new Unsuccessful(`invalid tasks: ${invalid.length} of ${ended}`);
}

function summary(ended: number, invalid: readonly Validation[]): string {
  const totals = `${counted(ended, 'task')}, ${ended - invalid.length} valid`;
  if (invalid.length === 0) return totals;
  const rows = invalid.map(({ task, oracle, nop, why }) => [task, rewardsOf(oracle), rewardsOf(nop), why ?? '']);
  return `${table(['task', 'oracle', 'nop', 'why'], rows)}\n\n${totals}`;
}

const rewardsOf = (rows: readonly RolloutRow[]): string =>
  rows.map(({ reward }) => reward?.toFixed(2) ?? '-').join(' ') || '-';
