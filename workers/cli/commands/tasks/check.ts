import { cpus, totalmem } from 'node:os';
import type { Command } from 'commander';
import type { SetCheck } from '../../../../infra/tasks/check-set.ts';
import { type HomeOption, runningConfigOf, stackCommand } from '../../stack/command.ts';
import { Unsuccessful } from '../../text/errors.ts';
import { counted, live, print, printJson, table } from '../../text/output.ts';

interface CheckOptions extends HomeOption {
  readonly json?: true;
  readonly offline?: true;
}

/** Tasks that are read at once: reading a task waits for the disk. */
const readAtOnce = 8;
/** The longest reason in a table; `--json` has all of it. */
const longestCell = 90;

export function checkCommand(): Command {
  return stackCommand(
    'check',
    'Reads all tasks of a set and says how many can run here, why the others are refused, and what they need.',
    'temper tasks check ./tasks',
  )
    .argument('<set>', 'finite task set (generated:test/1?count=8), data set or directory')
    .option('--json', 'print one JSON object to stdout')
    .option('--offline', 'download nothing; fail and name what is missing')
    .action(check);
}

async function check(named: string, options: CheckOptions): Promise<void> {
  const { openTaskSource } = await import('../../stack/task-source.ts');
  const { openSharedState } = await import('../../../../infra/store/shared-state.ts');
  const { createSetChecker } = await import('../../../../infra/tasks/check-set.ts');
  const { forEachConcurrently } = await import('./for-each-concurrently.ts');
  const config = await runningConfigOf(options);
  const { blobs: store } = await openSharedState(config.store);
  const { tasks, address } = await openTaskSource(named, { config, store, offline: options.offline === true });
  const checker = createSetChecker({
    cpus: cpus().length,
    memoryMb: Math.floor(totalmem() / 2 ** 20),
    network: config.network,
    variables: config.taskVariables,
  });
  let read = 0;
  await forEachConcurrently(
    tasks.scan(address),
    readAtOnce,
    async (found) => {
      await checker.add(found);
      read += 1;
      live(`${counted(read, 'task')} read`);
    },
    new AbortController().signal,
  );
  live('');
  const result = checker.result();
  if (options.json) printJson({ set: address, ...result });
  else print(textOf(result));
  const refused = result.tasks - result.usable;
  if (refused > 0) throw new Unsuccessful(`${counted(refused, 'task')} of ${address} cannot be used`);
}

function textOf({ tasks, usable, ungranted, images, largest, refused, settings, graded, needs }: SetCheck): string {
  const others = ungranted === 0 ? '' : `, ${ungranted} of them with other settings`;
  const left = tasks - usable;
  const summary = [
    `${counted(tasks, 'task')}: ${usable} can run here${others}; ${left} ${left === 1 ? 'is' : 'are'} refused`,
    `${counted(images, 'image')}; at most ${counted(largest.cpus, 'CPU')}, ${largest.memoryMb} MB memory, ${largest.diskMb} MB disk`,
  ].join('\n');
  const reasons = refused.map(({ count, reason, got, example }) => [
    String(count),
    cut(reason),
    cut(valuesOf(got)),
    example,
  ]);
  const wanting = settings.map(({ count, setting, example }) => [String(count), setting, example]);
  const ways = graded.map(({ count, sandbox, what, example }) => [String(count), sandbox, what, example]);
  const wanted = needs.map(({ count, need, what, example, place }) => {
    return [String(count), need, what, place === undefined ? example : `${example} (${place})`];
  });
  return [
    summary,
    ...(reasons.length === 0 ? [] : [table(['refused', 'because', 'got', 'for example'], reasons)]),
    ...(wanting.length === 0 ? [] : [table(['tasks', 'refused without the setting', 'for example'], wanting)]),
    ...(ways.length === 0 ? [] : [table(['tasks', 'graded', 'by tests in', 'for example'], ways)]),
    ...(wanted.length === 0 ? [] : [table(['tasks', 'need', 'why', 'for example'], wanted)]),
  ].join('\n\n');
}

const valuesOf = (got: SetCheck['refused'][number]['got']): string =>
  got.length === 1 ? (got[0]?.value ?? '') : got.map(({ value, count }) => `${value} (${count})`).join(', ');

const cut = (text: string): string => (text.length > longestCell ? `${text.slice(0, longestCell - 1)}…` : text);
