import { after, before, describe } from 'node:test';
import { createKubernetesProvider } from '../../infra/sandbox/kubernetes/provider.ts';
import { loadImages, programsImage } from '../helpers/kubernetes/cluster.ts';
import { testNamespace } from '../helpers/kubernetes/namespace.ts';
import { buildPlantedImage, plantedInPath, plantedSuite, removePlantedImage } from './planted-suite.ts';

describe('in a cluster', async () => {
  const namespace = await testNamespace('planted');
  let image: string;
  before(async () => {
    image = await buildPlantedImage();
    await loadImages(image);
  });
  after(() => removePlantedImage(image));
  plantedSuite('kubernetes', plantedInPath, {
    image: async () => image,
    open: (stack) => createKubernetesProvider({ stack, namespace, programs: programsImage, requests: 0.01 }),
  });
});
