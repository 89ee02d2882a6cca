import type { ImageProgress } from '../../../../infra/sandbox/image.ts';
import { prepareImage } from '../../../../infra/sandbox/prepare-image.ts';
import type { SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../../infra/store/store.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import type { HarborTask } from '../../../../infra/tasks/harbor/harbor-task.ts';
import { type FailureType, TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { Task } from '../../../../workflows/contracts/task.ts';
import { eachAtOnce } from './each-at-once.ts';

/** What became of an image, or of a task that says nothing of its image. */
export interface Warmed {
  /** As the task names it, or by the content that it is built from; null for a task that can't be read. */
  readonly image: string | null;
  /** The first that needs it. */
  readonly task: string;
  readonly state: 'there' | 'pulled' | 'built' | 'failed';
  readonly seconds: number;
  readonly failure: { readonly type: FailureType; readonly message: string } | null;
}

export interface PrewarmOptions {
  /** As a rollout in a docker sandbox would choose. */
  choose(task: FoundImage, files: HarborTask): Promise<Pick<SandboxProvider, 'prepare'>>;
  readonly store: Store;
  progress(progress: ImageProgress): void;
  finish(warmed: Warmed): void;
}

export type FoundImage = Pick<Task, 'id' | 'image' | 'imageFrom' | 'workdir'>;

/** Looked at at once; how many are pulled and built at once is the provider's matter. */
const tasksAtOnce = 64;

/** Brings the images of tasks to this host, each once. One that can't be had hides no other; an abort ends those under way. */
export async function prewarm(
  tasks: AsyncIterable<FoundTask>,
  options: PrewarmOptions,
  signal: AbortSignal,
): Promise<void> {
  const begun = new Set<string>();
  const each = async (found: FoundTask, ending: AbortSignal): Promise<void> => {
    const warmed = await warm(found, begun, options, ending);
    if (warmed !== null && !ending.aborted) options.finish(warmed);
  };
  await eachAtOnce(tasks, tasksAtOnce, each, signal);
}

/** Null where another task has begun with the same one. */
async function warm(
  { id, read }: FoundTask,
  begun: Set<string>,
  { choose, store, progress }: PrewarmOptions,
  signal: AbortSignal,
): Promise<Warmed | null> {
  const startedAt = performance.now();
  let image: string | null = null;
  let state: Warmed['state'] = 'there';
  const ended = (failure: Warmed['failure']): Warmed => {
    const seconds = (performance.now() - startedAt) / 1000;
    return { image, task: id, state: failure === null ? state : 'failed', seconds, failure };
  };
  const report = (seen: ImageProgress): void => {
    if (seen.doing === 'pulling') state = 'pulled';
    if (seen.doing === 'building') state = 'built';
    progress(seen);
  };
  try {
    const files = await read();
    ({ image } = files.description);
    if (begun.has(image)) return null;
    begun.add(image);
    const task = { id, ...files.description };
    const provider = await choose(task, files);
    await prepareImage({ store, provider }, { task, files }, report, signal);
    return ended(null);
  } catch (error) {
    if (signal.aborted) return null;
    if (!(error instanceof TemperFailure)) throw error;
    return ended({ type: error.type, message: error.message });
  }
}
