import { plantedForHooks, plantedSuite } from './planted-suite.ts';

plantedSuite('local', plantedForHooks, { image: async () => 'temper-tasks:bookworm' });
