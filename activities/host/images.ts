import { BuildFailure } from '../../infra/sandbox/failure.ts';
import type { ImageRequest, ReportImage } from '../../infra/sandbox/image.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import type { HarborTask } from '../../infra/tasks/harbor/harbor.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { atBoundary } from '../boundary.ts';
import type { ImageActivities } from '../interfaces.ts';
import { choiceFor } from './choice.ts';
import { filesIn, type Host } from './host.ts';

export function createImageActivities(host: Host): ImageActivities {
  return {
    prepareImage: ({ task, agent, sandbox }) =>
      atBoundary(async (signal, report) => {
        const files = await host.tasks.open(task);
        const provider = await host.choose(choiceFor(host.agent(agent), sandbox), task, filesIn(files));
        return { image: await prepareImage(host, provider, { task, files }, report, signal) };
      }),
  };
}

/** What the sandboxes of a task are made of. The log of a build that failed is kept: it is all that anybody can look at. */
export async function prepareImage(
  { store }: Pick<Host, 'store'>,
  provider: Pick<SandboxProvider, 'prepare'>,
  { task, files }: { readonly task: Pick<Task, 'id' | 'image' | 'imageFrom'>; readonly files: HarborTask },
  report: ReportImage,
  signal: AbortSignal,
): Promise<string> {
  const source = sourceOf(task, files);
  try {
    return await provider.prepare({ task: task.id, image: task.image, source }, report, signal);
  } catch (error) {
    if (!(error instanceof BuildFailure)) throw error;
    const { digest } = await store.put(error.log, 'text/plain');
    throw new TemperFailure(error.type, `${error.message}; its log is blob ${digest}`, { cause: error });
  }
}

function sourceOf({ id, imageFrom }: Pick<Task, 'id' | 'imageFrom'>, { build }: HarborTask): ImageRequest['source'] {
  if (imageFrom !== 'dockerfile') return imageFrom ?? 'host';
  if (build !== null) return build;
  throw new TemperFailure('MalformedTask', `task ${id}: expected environment/Dockerfile in its bundle, got none`);
}
