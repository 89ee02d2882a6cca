import { prepareImage } from '../../infra/sandbox/prepare-image.ts';
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
