import { after, before, describe } from 'node:test';
import {
  buildPlantedImage,
  plantedForHooks,
  plantedInPath,
  plantedSuite,
  removePlantedImage,
} from './planted-suite.ts';

describe('in Docker', () => {
  let image: string;
  before(async () => {
    image = await buildPlantedImage();
  });
  after(() => removePlantedImage(image));
  plantedSuite('docker', plantedInPath, { image: async () => image });
  plantedSuite('docker', plantedForHooks, { image: async () => 'temper-tasks:bookworm' });
});
