import { grantNetwork } from '../../infra/egress/grant-network.ts';
import { prepareImages } from '../../infra/grading/artifacts/prepare-images.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { ImageActivities } from '../interfaces/host.ts';
import { sandboxChoice } from './choice.ts';
import { declineElsewhere } from './elsewhere.ts';
import type { Host } from './host.ts';

export function createImageActivities(host: Host): ImageActivities {
  return {
    prepareImage: ({ task, agent, sandbox }) =>
      joinAtBoundary(async (signal, report) => {
        await declineElsewhere(host, sandbox);
        // A command that packs its tasks itself does not know what the operator of the stack allows.
        grantNetwork(task, host.network.cap);
        const files = await host.tasks.open(task);
        const choice = sandboxChoice(host.agent(agent), sandbox);
        const provider = await host.choose(choice, task, { filesInImage: files.workspace.size === 0 });
        const images = { store: host.store, provider };
        const { image } = await prepareImages(images, { task, files }, report, signal);
        return { image };
      }),
  };
}
