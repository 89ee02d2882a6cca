import { workerData } from 'node:worker_threads';
import { createTrainer, type TrainerOptions } from '../trainer/trainer.ts';
import type { TrainerCore } from '../trainer-core.ts';
import { serveCalls } from './serve.ts';

const trainer: TrainerCore = createTrainer(workerData as TrainerOptions); // startThread passes exactly this

type Arguments<Name extends keyof TrainerCore> = Parameters<TrainerCore[Name]>;

// createTrainerClient, the other end, is typed by the same interface.
serveCalls({
  createModel: (args) => trainer.createModel(...(args as Arguments<'createModel'>)),
  forwardBackward: (args) => trainer.forwardBackward(...(args as Arguments<'forwardBackward'>)),
  optimStep: (args) => trainer.optimStep(...(args as Arguments<'optimStep'>)),
  save: (args) => trainer.save(...(args as Arguments<'save'>)),
  load: (args) => trainer.load(...(args as Arguments<'load'>)),
  unload: (args) => trainer.unload(...(args as Arguments<'unload'>)),
  status: (args) => trainer.status(...(args as Arguments<'status'>)),
  models: () => trainer.models(),
});
