import { cpus, totalmem } from 'node:os';
import type { Command } from 'commander';
import type { Config } from '../../../../infra/settings/config.ts';
import type { SetCheck } from '../../../../infra/tasks/check-set.ts';
import type { LeftOut } from '../../../../infra/tasks/left-out.ts';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';
import { type HomeOption, runningConfigOf, stackCommand } from '../../stack/command.ts';
import { Unsuccessful } from '../../text/errors.ts';
import { withoutImages } from '../../text/local-images.ts';
import { counted, countedList, live, print, printJson } from '../../text/output.ts';

interface CheckOptions extends HomeOption {
  readonly json?: true;
  readonly offline?: true;
}

/** Tasks that are read at once: reading a task waits for the disk. */
const readAtOnce = 8;
/** The time in which Docker must answer. */
const dockerTimeoutMs = 10_000;
/** The longest values that are shown; `--json` has all of them. */
const longestValues = 300;

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
  const { findLeftOut } = await import('../../../../infra/tasks/left-out.ts');
  const { forEachConcurrently } = await import('../../../../infra/tasks/for-each-concurrently.ts');
  const config = await runningConfigOf(options);
  const { blobs: store } = await openSharedState(config.store);
  const { tasks, address } = await openTaskSource(named, { config, store, offline: options.offline === true });
  const checker = createSetChecker({
    cpus: cpus().length,
    memoryMb: Math.floor(totalmem() / 2 ** 20),
    network: config.network,
    variables: config.taskVariables,
    hasOwnTools: config.tools.length > 0,
    withoutImages: withoutImages(config.sandbox, await dockerProblem(config)),
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
  const leftOut = await findLeftOut(address);
  if (options.json) printJson({ set: address, ...result, leftOut });
  else print(textOf({ ...result, leftOut }));
  const refused = result.tasks - result.usable;
  if (refused > 0) throw new Unsuccessful(`${counted(refused, 'task')} of ${address} cannot be used`);
}

/** Returns the reason why Docker cannot be used on this host; null if it can, or if the settings choose another kind. */
async function dockerProblem({ sandbox, docker: { runtime } }: Config): Promise<string | null> {
  if (sandbox !== 'auto' && sandbox !== 'docker') return null;
  const { default: Docker } = await import('dockerode');
  const { createDockerProvider } = await import('../../../../infra/sandbox/docker/provider.ts');
  try {
    const docker = new Docker({ timeout: dockerTimeoutMs });
    const { ready, summary } = await createDockerProvider({ stack: 'check', runtime, docker }).describe();
    return ready ? null : summary;
  } catch (error) {
    return errorMessage(error);
  }
}

interface Checked extends SetCheck {
  readonly leftOut: readonly LeftOut[];
}

function textOf(checked: Checked): string {
  const { tasks, usable, ungranted, images, largest, refused, settings, graded, needs, leftOut } = checked;
  const others = ungranted === 0 ? '' : `, ${ungranted} of them with other settings`;
  const left = tasks - usable;
  const summary = [
    `${counted(tasks, 'task')}: ${usable} can run here${others}; ${left} ${left === 1 ? 'is' : 'are'} refused`,
    `${counted(images, 'image')}; at most ${counted(largest.cpus, 'CPU')}, ${largest.memoryMb} MB memory, ${largest.diskMb} MB disk`,
  ].join('\n');
  const reasons = refused.map(({ count, reason, got, example }) => ({
    count,
    what: reason,
    about: [[...(got.length === 0 ? [] : [`got ${cut(valuesOf(got))}`]), `for example ${example}`].join('; ')],
  }));
  const wanting = settings.map(({ count, setting, example }) => ({
    count,
    what: setting,
    about: [`for example ${example}`],
  }));
  const ways = graded.map(({ count, sandbox, what, example }) => ({
    count,
    what: sandbox,
    about: [`${what}; for example ${example}`],
  }));
  const wanted = needs.map(({ count, need, what, example, place }) => ({
    count,
    what: need,
    about: [`${what}; for example ${example}${place === undefined ? '' : ` (${place})`}`],
  }));
  const apart = leftOut.map(({ count, why, example }) => ({ count, what: why, about: [`for example ${example}`] }));
  const lists = [
    ['refused, because', reasons],
    ['directories that are left out, with', apart],
    ['refused when they start, without the setting', wanting],
    ['graded by tests in', ways],
    ['need', wanted],
  ] as const;
  const shown = lists.flatMap(([title, items]) => (items.length === 0 ? [] : [countedList(title, items)]));
  return [summary, ...shown].join('\n\n');
}

const valuesOf = (got: SetCheck['refused'][number]['got']): string =>
  got.length === 1 ? (got[0]?.value ?? '') : got.map(({ value, count }) => `${value} (${count})`).join(', ');

const cut = (text: string): string => (text.length > longestValues ? `${text.slice(0, longestValues - 1)}…` : text);
