import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Store } from '../store/store.ts';
import { BuildFailure } from './failure.ts';
import type { BuildContext, ImageRequest, ReportImage } from './image.ts';
import type { SandboxProvider } from './sandbox.ts';
import type { Beside, SandboxService, TaskService } from './service.ts';

/** A task with what its own files say about building its image; null without a Dockerfile. */
export interface TaskImage {
  readonly task: Pick<Task, 'id' | 'image' | 'imageFrom'>;
  readonly files: { readonly build: BuildContext | null };
}

/** The hosts' parts that images are prepared with. */
export interface Preparing {
  readonly store: Pick<Store, 'put'>;
  readonly provider: Pick<SandboxProvider, 'prepare'>;
}

/**
 * Makes the image of a task available and returns its name. The log of a failed build is stored: it is the only trace that
 * the build leaves. Throws TemperFailure MalformedTask, BuildFailed, or what `SandboxProvider.prepare` throws.
 */
export async function prepareImage(
  preparing: Preparing,
  { task, files }: TaskImage,
  report: ReportImage,
  signal: AbortSignal,
): Promise<string> {
  const source = sourceOf(task, files.build);
  return prepare(preparing, { task: task.id, image: task.image, source }, { report, signal });
}

/** A task with the containers beside its sandboxes. */
interface TaskSandbox extends TaskImage {
  readonly files: TaskImage['files'] & { readonly beside: Beside<TaskService> | null };
}

/** The images that a sandbox is made from. */
export interface PreparedSandbox {
  readonly image: string;
  /** The containers beside it; null if there are none. */
  readonly beside: Beside | null;
}

/** Makes the images of a task's sandbox and of its services available. Throws as `prepareImage` does. */
export async function prepareSandbox(
  preparing: Preparing,
  asked: TaskSandbox,
  report: ReportImage,
  signal: AbortSignal,
): Promise<PreparedSandbox> {
  const ofSandbox = await prepareImage(preparing, asked, report, signal);
  const { task, files } = asked;
  if (files.beside === null) return { image: ofSandbox, beside: null };
  const services: SandboxService[] = [];
  for (const { image: given, ...service } of files.beside.services) {
    const request = given === 'main' ? null : imageRequest(`${task.id}, service ${service.name}`, given);
    const image = request === null ? ofSandbox : await prepare(preparing, request, { report, signal });
    services.push({ ...service, image });
  }
  return { image: ofSandbox, beside: { ...files.beside, services } };
}

/** Returns what identifies the content of the images. */
export async function contentOf(
  provider: Pick<SandboxProvider, 'imageId'>,
  { image, beside }: PreparedSandbox,
): Promise<string> {
  const images = [image, ...(beside?.services ?? []).map((service) => service.image)];
  return (await Promise.all(images.map((name) => provider.imageId(name)))).join(' ');
}

const imageRequest = (task: string, asked: Exclude<TaskService['image'], 'main'>): ImageRequest => ({
  task,
  image: asked.image,
  source: 'from' in asked ? asked.from : asked,
});

async function prepare(
  { store, provider }: Preparing,
  request: ImageRequest,
  { report, signal }: { readonly report: ReportImage; readonly signal: AbortSignal },
): Promise<string> {
  try {
    return await provider.prepare(request, report, signal);
  } catch (error) {
    if (!(error instanceof BuildFailure)) throw error;
    const { digest } = await store.put(error.log, 'text/plain');
    throw new TemperFailure(error.type, `${error.message}; its log is blob ${digest}`, { cause: error });
  }
}

function sourceOf({ id, imageFrom }: TaskImage['task'], build: BuildContext | null): ImageRequest['source'] {
  if (imageFrom !== 'dockerfile') return imageFrom ?? 'host';
  if (build !== null) return build;
  throw new TemperFailure('MalformedTask', `task ${id}: expected environment/Dockerfile in its bundle, got none`);
}
