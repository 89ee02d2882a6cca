import { after } from 'node:test';
import { createE2bProvider } from '../../infra/sandbox/e2b/provider.ts';
import { templateNameOf } from '../../infra/sandbox/e2b/templates.ts';
import { startE2bServer } from '../helpers/e2b/server.ts';
import { e2bSettings } from '../helpers/e2b/settings.ts';
import { buildImage, removeImage } from './odd-images.ts';
import { plantedForHooks, plantedImage, plantedSuite } from './planted-suite.ts';

const image = await buildImage('e2b', plantedImage);
const template = { image, cpuCount: 2, memoryMB: 1_024 };
const server = await startE2bServer({ templates: { [templateNameOf('temper-tasks:bookworm')]: template } });
after(async () => {
  await server.close();
  await removeImage(image);
});

// Of its image's variables a sandbox of E2B has the PATH.
plantedSuite('e2b', plantedForHooks, {
  image: async () => 'temper-tasks:bookworm',
  open: (stack, home) => createE2bProvider({ stack, ...e2bSettings(server, home) }),
  carriesChanges: false,
});
