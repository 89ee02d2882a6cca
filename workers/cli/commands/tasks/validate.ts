import { type Command, Option } from 'commander';
import { onInterrupt } from '../../follow/interrupt.ts';
import { type HomeOption, stackCommand, wholeNumber } from '../../stack/command.ts';
import { Interrupted, Unsuccessful } from '../../text/errors.ts';
import { live, note, print, printJson, table } from '../../text/output.ts';
import type { RolloutRow } from '../rollout/row.ts';
import type { Validation } from './validation.ts';

interface ValidateOptions extends HomeOption {
  readonly sandbox: 'auto' | 'docker' | 'local';
  readonly concurrency?: number;
  readonly repeat: number;
  readonly again?: true;
  readonly json?: true;
  readonly offline?: true;
  readonly up: boolean;
}

export function validateCommand(): Command {
  return stackCommand(
    'validate',
    'Says which tasks of a set their reference solution does not solve, or doing nothing does',
    'temper tasks validate ./tasks --sandbox docker',
  )
    .argument('<set>', 'a task set that ends, a data set, or a directory')
    .addOption(new Option('--sandbox <kind>', 'where it runs').choices(['auto', 'docker', 'local']).default('auto'))
    .option('--concurrency <n>', 'tasks at once (default: what the host has room for)', wholeNumber(1, 500))
    .option('--repeat <n>', 'rollouts of each, to find tests that are flaky', wholeNumber(1, 100), 1)
    .option('--again', 'do all again, instead of taking the scores of an earlier validation')
    .option('--json', 'one JSON object per task on stdout')
    .option('--offline', 'download nothing: say what is missing instead')
    .option('--no-up', 'fail when no stack is running, instead of bringing one up for the duration')
    .action(validate);
}

async function validate(named: string, options: ValidateOptions): Promise<void> {
  const { openSession } = await import('../../stack/stack-session.ts');
  const { openTaskSource } = await import('../../stack/task-source.ts');
  const { createQuarantine } = await import('../../../../infra/tasks/quarantine.ts');
  const { createRecords } = await import('../../../../infra/store/records.ts');
  const { validateTasks } = await import('./validation.ts');
  const interrupt = onInterrupt('cancelling the rollouts; waiting until they have cleaned up');
  const session = await openSession(options, options.up, interrupt.signal);
  const invalid: Validation[] = [];
  const valid: string[] = [];
  let ended = 0;
  const finish = (validation: Validation): void => {
    ended += 1;
    if (validation.packed !== null && validation.valid) valid.push(validation.packed);
    else invalid.push(validation);
    if (options.json) printJson(validation);
    else if (!validation.valid) note(`${validation.task}  ${validation.why}`);
    live(`${ended} validated · ${invalid.length} of them not valid`);
  };
  try {
    const { config, store, client } = session;
    const { tasks, address } = await openTaskSource(named, { config, store, offline: options.offline === true });
    const concurrency = options.concurrency ?? config.capacity;
    const { sandbox, repeat, again = false } = options;
    const asked = { sandbox, concurrency, repeat, again, finish };
    const quarantine = createQuarantine(createRecords(config.home));
    await validateTasks(client, tasks.scan(address), asked, interrupt.signal);
    live('');
    for (const { task, address: found, packed, flaky: evidence } of invalid) {
      if (evidence.length === 0 || packed === null) continue;
      await quarantine.add({ task, addresses: [found, packed], evidence });
      note(
        `${task} is quarantined: evaluations of one diff disagree; let it out with \`temper tasks release ${task}\``,
      );
    }
    if (!options.json) print(summary(ended, invalid));
    if (!interrupt.signal.aborted && valid.length > 0 && invalid.length > 0) {
      note(`the valid ones are the set blob:${(await store.putJson(valid)).digest}`);
    }
  } finally {
    if (session.own !== null) note('taking the stack down');
    await session.close();
    interrupt.release();
  }
  if (interrupt.signal.aborted) {
    throw new Interrupted(`interrupted after ${ended} tasks; the same command goes on with the others`);
  }
  if (invalid.length > 0) throw new Unsuccessful(`${invalid.length} of ${ended} tasks are not valid`);
}

function summary(ended: number, invalid: readonly Validation[]): string {
  const said = `${ended} tasks, ${ended - invalid.length} valid`;
  if (invalid.length === 0) return said;
  const rows = invalid.map(({ task, oracle, nop, why }) => [task, rewardsOf(oracle), rewardsOf(nop), why ?? '']);
  return `${table(['task', 'oracle', 'nop', 'why'], rows)}\n\n${said}`;
}

const rewardsOf = (rows: readonly RolloutRow[]): string =>
  rows.map(({ reward }) => reward?.toFixed(2) ?? '-').join(' ') || '-';
