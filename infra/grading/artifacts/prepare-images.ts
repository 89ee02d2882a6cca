import type { Task } from '../../../workflows/contracts/task.ts';
import type { BuildContext, ReportImage } from '../../sandbox/image.ts';
import { type PreparedSandbox, type Preparing, prepareImage, prepareSandbox } from '../../sandbox/prepare-image.ts';
import type { Beside, TaskService } from '../../sandbox/service.ts';
import type { TestImage } from '../task.ts';

interface TaskImages {
  readonly task: Pick<Task, 'id' | 'image' | 'imageFrom' | 'testSandbox'>;
  readonly files: {
    readonly build: BuildContext | null;
    readonly beside: Beside<TaskService> | null;
    readonly testImage: TestImage | null;
  };
}

/** Makes all images of a task available: those of its agent's sandbox, and that of its tests. Throws as `prepareImage` does. */
export async function prepareImages(
  preparing: Preparing,
  { task, files }: TaskImages,
  report: ReportImage,
  signal: AbortSignal,
): Promise<PreparedSandbox> {
  const prepared = await prepareSandbox(preparing, { task, files }, report, signal);
  if (files.testImage !== null && task.testSandbox !== undefined) {
    const { image, imageFrom } = task.testSandbox;
    const ofTests = { id: `${task.id}, its tests`, image, ...(imageFrom && { imageFrom }) };
    await prepareImage(preparing, { task: ofTests, files: files.testImage }, report, signal);
  }
  return prepared;
}
