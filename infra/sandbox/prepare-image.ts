import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Store } from '../store/store.ts';
import { BuildFailure } from './failure.ts';
import type { BuildContext, ImageRequest, ReportImage } from './image.ts';
import type { SandboxProvider } from './sandbox.ts';

/** A task with what its own files say about building its image; null without a Dockerfile. */
export interface TaskImage {
  readonly task: Pick<Task, 'id' | 'image' | 'imageFrom'>;
  readonly files: { readonly build: BuildContext | null };
}

/**
 * Makes the image of a task available and returns its name. The log of a failed build is stored: it is the only trace that
 * the build leaves. Throws TemperFailure MalformedTask, BuildFailed, or what `SandboxProvider.prepare` throws.
 */
export async function prepareImage(
  { store, provider }: { readonly store: Pick<Store, 'put'>; readonly provider: Pick<SandboxProvider, 'prepare'> },
  { task, files }: TaskImage,
  report: ReportImage,
  signal: AbortSignal,
): Promise<string> {
  const source = sourceOf(task, files.build);
  try {
    return await provider.prepare({ task: task.id, image: task.image, source }, report, signal);
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
