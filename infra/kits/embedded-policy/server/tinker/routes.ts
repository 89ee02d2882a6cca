import { Hono } from 'hono';
import { errorMessage } from '../../errors.ts';
import { addCheckpointRoutes } from './checkpoint-routes.ts';
import { addSamplingRoutes } from './sampling-routes.ts';
import { addServiceRoutes } from './service-routes.ts';
import { createSessions } from './sessions.ts';
import { type TinkerDependencies, TinkerError, type TinkerState } from './state.ts';
import { addStoredRoutes } from './stored-routes.ts';
import { addTrainingRoutes, unload } from './training-routes.ts';

/**
 * The Tinker API of the SDK's versions 0.25 to 0.38: protobuf for forward_backward and for the results of forward_backward and
 * asample, otherwise JSON. What a request asks for and this server lacks is refused by name.
 */
export function createTinkerRoutes(dependencies: TinkerDependencies): Hono {
  const app = new Hono();
  const endModels = (session: string): void => {
    // A failure is the trainer's thread's, which ends the process.
    for (const [id, model] of state.models) if (model.session === session) void unload(state, id);
  };
  const state: TinkerState = {
    ...dependencies,
    sessions: createSessions(endModels),
    models: new Map(),
    saving: new Set(),
  };
  app.onError((error, c) => {
    if (error instanceof TinkerError) return c.json({ detail: error.message }, error.status);
    return c.json({ detail: errorMessage(error) }, 500);
  });
  addServiceRoutes(app, state);
  addTrainingRoutes(app, state);
  addCheckpointRoutes(app, state);
  addStoredRoutes(app, state);
  addSamplingRoutes(app, state);
  return app;
}
