import { Hono } from 'hono';
import { addCheckpointRoutes } from './checkpoint-routes.ts';
import { messageOf } from './outcome.ts';
import { addSamplingRoutes } from './sampling-routes.ts';
import { addServiceRoutes } from './service-routes.ts';
import { Refusal, type State, type TinkerDependencies } from './state.ts';
import { addStoredRoutes } from './stored-routes.ts';
import { addTrainingRoutes } from './training-routes.ts';

/** The Tinker API on its wire since SDK 0.25: protobuf for forward_backward and for its and a sample's results, else JSON. */
export function createTinkerRoutes(dependencies: TinkerDependencies): Hono {
  const app = new Hono();
  const state: State = {
    ...dependencies,
    sessions: new Set(),
    samplingSessions: new Map(),
    models: new Map(),
    saving: new Set(),
  };
  app.onError((error, c) => {
    if (error instanceof Refusal) return c.json({ detail: error.message }, error.status);
    return c.json({ detail: messageOf(error) }, 500);
  });
  addServiceRoutes(app, state);
  addTrainingRoutes(app, state);
  addCheckpointRoutes(app, state);
  addStoredRoutes(app, state);
  addSamplingRoutes(app, state);
  return app;
}
