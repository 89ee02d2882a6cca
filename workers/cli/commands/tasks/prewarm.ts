import type { Command } from 'commander';
import type { ImageProgress } from '../../../../infra/sandbox/image.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import type { HarborTask } from '../../../../infra/tasks/harbor/harbor-task.ts';
import { onInterrupt } from '../../follow/interrupt.ts';
import { type HomeOption, runningConfigOf, stackCommand, wholeNumber } from '../../stack/command.ts';
import { Interrupted, Unsuccessful } from '../../text/errors.ts';
import { live, note, print, printJson, seconds, table } from '../../text/output.ts';
import type { FoundImage, Warmed } from './prewarming.ts';

interface PrewarmOptions extends HomeOption {
  readonly count?: number;
  readonly offset: number;
  readonly json?: true;
  readonly offline?: true;
}

export function prewarmCommand(): Command {
  return stackCommand(
    'prewarm',
    "Pulls and builds the images that the tasks of a set need onto this machine's Docker, before they are wanted",
    'temper tasks prewarm swe-gym:./rows.jsonl --count 50',
  )
    .argument('<set>', 'a task set that ends, a data set, or a directory')
    .option('--count <n>', 'of so many tasks (default: all)', wholeNumber(1, 10_000_000))
    .option('--offset <n>', 'from this task on, counted from 0', wholeNumber(0, 10_000_000), 0)
    .option('--json', 'one JSON object per image on stdout')
    .option('--offline', 'download no data set: say what is missing instead')
    .action(prewarmSet);
}

/** In a process of its own, without a stack: it is the daemon that pulls and builds, and what it has every worker has. */
async function prewarmSet(named: string, options: PrewarmOptions): Promise<void> {
  const { openProviders } = await import('../../../../infra/sandbox/index.ts');
  const { openStack } = await import('../../../../infra/stack.ts');
  const { createFileStore } = await import('../../../../infra/store/files.ts');
  const { openTaskSource } = await import('../../stack/task-source.ts');
  const { prewarm } = await import('./prewarming.ts');
  const config = await runningConfigOf(options);
  const store = createFileStore(config.paths.store);
  const { tasks, address } = await openTaskSource(named, { config, store, offline: options.offline === true });
  const { docker, paths, dockerConfigDir, env } = config;
  const { id: stack } = await openStack(config.paths);
  const opened = {
    ...{ stack, docker, root: paths.sandboxes, images: paths.images, preferred: 'docker' as const },
    accounts: { directory: dockerConfigDir, env },
  };
  const { all: providers, choose, ready } = await openProviders(opened);
  await ready('docker');
  const interrupt = onInterrupt('ending the pulls and builds; images that have arrived stay');
  const board = createBoard(options.json === true);
  try {
    const chosen = part(tasks.scan(address), options.offset, options.count);
    const choosing = (task: FoundImage, { workspace }: HarborTask) =>
      choose('docker', task, { filesInImage: workspace.size === 0 });
    await prewarm(chosen, { ...board, store, choose: choosing }, interrupt.signal);
  } finally {
    live('');
    interrupt.release();
    for (const one of providers.values()) await one.close();
  }
  const { all } = board;
  const failed = all.filter(({ state }) => state === 'failed');
  if (!options.json) print(summary(all, failed));
  if (interrupt.signal.aborted)
    throw new Interrupted(`interrupted after ${all.length} images; the same command goes on`);
  if (failed.length > 0) throw new Unsuccessful(`${failed.length} of ${all.length} images could not be had`);
}

/** Some tasks of a set, in its order. */
async function* part(
  tasks: AsyncIterable<FoundTask>,
  offset: number,
  count = Number.POSITIVE_INFINITY,
): AsyncIterable<FoundTask> {
  let index = 0;
  for await (const task of tasks) {
    if (index >= offset + count) return;
    if (index >= offset) yield task;
    index += 1;
  }
}

/** A line for each image that had to be fetched, and a live line with what is under way. */
function createBoard(json: boolean) {
  const all: Warmed[] = [];
  const underWay = new Map<string, ImageProgress>();
  const redraw = (): void => {
    const doing = [...underWay.values()].filter(({ doing }) => doing !== 'waiting for others');
    const [first] = doing;
    const told =
      first === undefined ? '' : ` · ${progressText(first)}${doing.length > 1 ? `, ${doing.length - 1} more` : ''}`;
    live(`${all.length} images ready or failed · ${underWay.size} under way${told}`);
  };
  return {
    all: all as readonly Warmed[],
    progress(seen: ImageProgress): void {
      underWay.set(seen.image, seen);
      redraw();
    },
    finish(warmed: Warmed): void {
      all.push(warmed);
      // What is built has its base images' ids in its name.
      for (const image of underWay.keys()) {
        if (warmed.image !== null && image.startsWith(warmed.image)) underWay.delete(image);
      }
      if (json) printJson(warmed);
      else if (warmed.state !== 'there') note(lineOf(warmed));
      redraw();
    },
  };
}

const progressText = ({ doing, image, step, layers, megabytes }: ImageProgress): string =>
  [doing, image, step, layers && `${layers} layers`, megabytes && `${megabytes} MB`].filter(Boolean).join(' ');

const lineOf = ({ state, image, task, seconds: took, failure }: Warmed): string =>
  failure === null
    ? `${state}  ${image}  ${seconds(took)}`
    : `failed  ${image ?? task}  ${failure.type}: ${failure.message}`;

function summary(all: readonly Warmed[], failed: readonly Warmed[]): string {
  const count = (state: Warmed['state']): number => all.filter((one) => one.state === state).length;
  const said = `${all.length} images: ${count('there')} were there, ${count('pulled')} pulled, ${count('built')} built, ${count('failed')} failed`;
  if (failed.length === 0) return said;
  const rows = failed.map(({ image, task, failure }) => [image ?? '-', task, `${failure?.type}: ${failure?.message}`]);
  return `${table(['image', 'task', 'why'], rows)}\n\n${said}`;
}
