import type { TrainerCore } from '../core.ts';
import type { Thread } from './thread.ts';

type Result<Name extends keyof TrainerCore> = Awaited<ReturnType<TrainerCore[Name]>>;

/** Creates the trainer as the main thread sees it. */
export function createTrainerClient({ call }: Thread): TrainerCore {
  // trainer-thread.ts replies with the results of TrainerCore's methods of the same names.
  return {
    createModel: async (...args) => (await call('createModel', ...args)) as Result<'createModel'>,
    forwardBackward: async (...args) => (await call('forwardBackward', ...args)) as Result<'forwardBackward'>,
    optimStep: async (...args) => (await call('optimStep', ...args)) as Result<'optimStep'>,
    save: async (...args) => (await call('save', ...args)) as Result<'save'>,
    load: async (...args) => (await call('load', ...args)) as Result<'load'>,
    unload: async (...args) => (await call('unload', ...args)) as Result<'unload'>,
    status: async (...args) => (await call('status', ...args)) as Result<'status'>,
    models: async () => (await call('models')) as Result<'models'>,
  };
}
