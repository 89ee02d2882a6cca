import { prepareImages } from '../../../../infra/grading/artifacts/prepare-images.ts';
import { type HarborTask, imagesOf } from '../../../../infra/harbor/harbor-task.ts';
import type { ImageProgress } from '../../../../infra/sandbox/image.ts';
import type { SandboxProvider } from '../../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../../infra/store/store.ts';
import type { FoundTask } from '../../../../infra/tasks/find-task.ts';
import { forEachConcurrently } from '../../../../infra/tasks/for-each-concurrently.ts';
import { type FailureType, TemperFailure } from '../../../../workflows/contracts/failures.ts';
import type { Task } from '../../../../workflows/contracts/task.ts';

/** The result for one image, or for a task whose image is unknown because it could not be read. */
export interface PrewarmedImage {
  /**
   * The image as the task names it, or named by the content that it is built from; null if the task could not be read.
   */
  readonly image: string | null;
  /** The first task that needs the image. */
  readonly task: string;
  readonly state: 'there' | 'pulled' | 'built' | 'failed';
  readonly seconds: number;
  readonly failure: { readonly type: FailureType; readonly message: string } | null;
}

export interface PrewarmImages {
  /** Chooses the provider, as a rollout in a Docker sandbox would. */
  choose(task: FoundImage, files: HarborTask): Promise<Pick<SandboxProvider, 'prepare'>>;
  readonly store: Store;
  progress(progress: ImageProgress): void;
  finish(image: PrewarmedImage): void;
}

export type FoundImage = Pick<Task, 'id' | 'image' | 'imageFrom' | 'workdir'>;

/** Tasks that are processed at once. The provider limits how many images are pulled and built at once. */
const tasksAtOnce = 64;

/**
 * Pulls or builds the images of tasks onto this host, each once. A failure does not stop the rest; an abort stops all.
 */
export async function prewarmImages(
  tasks: AsyncIterable<FoundTask>,
  options: PrewarmImages,
  signal: AbortSignal,
): Promise<void> {
  const begun = new Set<string>();
  const each = async (found: FoundTask, ending: AbortSignal): Promise<void> => {
    const image = await prewarmOne(found, begun, options, ending);
    if (image !== null && !ending.aborted) options.finish(image);
  };
  await forEachConcurrently(tasks, tasksAtOnce, each, signal);
}

/** Prepares the images of one task. Returns null if another task has already begun with the same ones. */
async function prewarmOne(
  { id, read }: FoundTask,
  begun: Set<string>,
  { choose, store, progress }: PrewarmImages,
  signal: AbortSignal,
): Promise<PrewarmedImage | null> {
  const startedAt = performance.now();
  let image: string | null = null;
  let state: PrewarmedImage['state'] = 'there';
  const ended = (failure: PrewarmedImage['failure']): PrewarmedImage => {
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
    const images = imagesOf(files).join(' ');
    if (begun.has(images)) return null;
    begun.add(images);
    const task = { id, ...files.description };
    const { workdir, imageFrom } = task;
    // What else the task needs of this host does not matter: others may have the same image.
    const provider = await choose({ id, image, workdir, ...(imageFrom && { imageFrom }) }, files);
    await prepareImages({ store, provider }, { task, files }, report, signal);
    return ended(null);
  } catch (error) {
    if (signal.aborted) return null;
    if (!(error instanceof TemperFailure)) throw error;
    return ended({ type: error.type, message: error.message });
  }
}
