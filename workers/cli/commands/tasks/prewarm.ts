import type { Command } from 'commander';
import type { HarborTask } from '../../../../infra/harbor/harbor-task.ts';
import { type ImageProgress, imageProgressText } from '../../../../infra/sandbox/image.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { onInterrupt } from '../../follow/interrupt.ts';
import { type JsonOption, runningConfigOf, stackCommand, wholeNumber } from '../../stack/command.ts';
import { Interrupted, Unsuccessful } from '../../text/errors.ts';
import { counted, live, note, print, printJson, seconds, table } from '../../text/output.ts';
import type { FoundImage, PrewarmedImage } from './prewarm-images.ts';

interface PrewarmOptions extends JsonOption {
  readonly count?: number;
  readonly offset: number;
  readonly offline?: true;
}

export function prewarmCommand(): Command {
  return stackCommand(
    'prewarm',
    'Pulls and builds the Docker images of a task set on this machine ahead of time. No stack is needed.',
    'temper tasks prewarm swe-gym:./rows.jsonl --count 50',
  )
    .argument('<set>', 'finite task set (generated:test/1?count=8), data set or directory')
    .option('--count <n>', 'number of tasks to prewarm (default: all)', wholeNumber(1, 10_000_000))
    .option('--offset <n>', 'index of the first task, from 0', wholeNumber(0, 10_000_000), 0)
    .option('--json', 'print one JSON object per image to stdout')
    .option('--offline', 'download no data set; fail and name what is missing')
    .action(prewarmSet);
}

/** Works without a stack: the Docker daemon pulls and builds, and every worker on this machine uses its images. */
async function prewarmSet(named: string, options: PrewarmOptions): Promise<void> {
  const { openProviders } = await import('../../../../infra/sandbox/providers.ts');
  const { createRuntime } = await import('../../../../infra/agents/runtime.ts');
  const { createPublicNetwork } = await import('../../../../infra/egress/network.ts');
  const { createEgressPlaces } = await import('../../../../infra/egress/places.ts');
  const { createBuildProxies } = await import('../../../../infra/images/build-proxy.ts');
  const { openStackId } = await import('../../../../infra/stack.ts');
  const { openSharedState } = await import('../../../../infra/store/shared-state.ts');
  const { openTaskSource } = await import('../../stack/task-source.ts');
  const { prewarmImages } = await import('./prewarm-images.ts');
  const config = await runningConfigOf(options);
  const { blobs: store, objects } = await openSharedState(config.store);
  const { tasks, address } = await openTaskSource(named, { config, store, offline: options.offline === true });
  const { docker, paths, dockerConfigDir, env } = config;
  const stack = await openStackId(paths, objects);
  const {
    all: providers,
    choose,
    ready,
  } = await openProviders({
    stack,
    docker,
    root: paths.sandboxes,
    images: paths.images,
    preferred: 'docker',
    accounts: { directory: dockerConfigDir, env },
    buildProxy: createBuildProxies({
      cap: config.network,
      outside: createPublicNetwork(),
      places: createEgressPlaces(paths.egress),
      runtime: createRuntime({ cacheDir: config.cacheDir }).prepare,
    }),
  });
  await ready('docker');
  const interrupt = onInterrupt('stopping pulls and builds; finished images are kept');
  const board = createBoard(options.json === true);
  try {
    const chosen = slice(tasks.scan(address), options.offset, options.count);
    const choosing = (task: FoundImage, { workspace }: HarborTask) =>
      choose('docker', task, { filesInImage: workspace.size === 0 });
    await prewarmImages(
      chosen,
      { store, choose: choosing, progress: board.progress, finish: board.finish },
      interrupt.signal,
    );
  } finally {
    live('');
    interrupt.release();
    for (const one of providers.values()) await one.close();
  }
  const { all } = board;
  const failed = all.filter(({ state }) => state === 'failed');
  if (!options.json) print(summary(all, failed));
  if (interrupt.signal.aborted)
    throw new Interrupted(`interrupted after ${counted(all.length, 'image')}; run the same command again to continue`);
  if (failed.length > 0) throw new Unsuccessful(`${failed.length} of ${all.length} images could not be prepared`);
}

/** Yields some tasks of a set, in its order. */
async function* slice(
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

/** Creates the progress display: a line for each image that was pulled or built, and a live line about the rest. */
function createBoard(json: boolean) {
  const all: PrewarmedImage[] = [];
  const inProgress = new Map<string, ImageProgress>();
  const redraw = (): void => {
    const doing = [...inProgress.values()].filter(({ doing }) => doing === 'pulling' || doing === 'building');
    const [first] = doing;
    const detail =
      first === undefined
        ? ''
        : ` · ${imageProgressText(first)}${doing.length > 1 ? `, ${doing.length - 1} more` : ''}`;
    live(`${counted(all.length, 'image')} ready or failed · ${inProgress.size} in progress${detail}`);
  };
  return {
    all: all as readonly PrewarmedImage[],
    progress(seen: ImageProgress): void {
      inProgress.set(seen.image, seen);
      redraw();
    },
    finish(done: PrewarmedImage): void {
      all.push(done);
      // The name of a built image continues with the ids of its base images.
      for (const image of inProgress.keys()) {
        if (done.image !== null && image.startsWith(done.image)) inProgress.delete(image);
      }
      if (json) printJson(done);
      else if (done.state !== 'there') note(lineOf(done));
      redraw();
    },
  };
}

const lineOf = ({ state, image, task, seconds: took, failure }: PrewarmedImage): string =>
  failure === null
    ? `${state}  ${image}  ${seconds(took)}`
    : `failed  ${image ?? task}  ${failure.type}: ${failure.message}`;

function summary(all: readonly PrewarmedImage[], failed: readonly PrewarmedImage[]): string {
  const count = (state: PrewarmedImage['state']): number => all.filter((one) => one.state === state).length;
  const totals = `${counted(all.length, 'image')}: ${count('there')} already present, ${count('pulled')} pulled, ${count('built')} built, ${count('failed')} failed`;
  if (failed.length === 0) return totals;
  const rows = failed.map(({ image, task, failure }) => [image ?? '-', task, `${failure?.type}: ${failure?.message}`]);
  return `${table(['image', 'task', 'why'], rows)}\n\n${totals}`;
}
