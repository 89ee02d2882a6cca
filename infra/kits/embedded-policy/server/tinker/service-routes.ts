import type { Hono } from 'hono';
import {
  createSessionRequest,
  protobufType,
  retrieveFutureRequest,
  sessionRequest,
} from '../../../tinker-wire/index.ts';
import { readBody, TinkerError, type TinkerState } from './state.ts';

/** The longest wait of one poll. The SDK gives up after 45 s and polls again. */
const retrieveWaitMs = 30_000;

/** Adds the routes for sessions, for futures, and for the SDK's start-up. */
export function addServiceRoutes(app: Hono, { modelName, contextLength, sessions, futures }: TinkerState): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/get_server_capabilities', (c) =>
    c.json({ supported_models: [{ model_name: modelName, max_context_length: contextLength }] }),
  );
  app.post('/client/config', (c) => c.json({ pjwt_auth_enabled: false, use_pyqwest_transport: false }));
  app.post('/client/dynamic_config', (c) => c.json({ refresh_interval_sec: 300 }));
  app.post('/telemetry', (c) => c.json({ status: 'accepted' }));
  app.post('/create_session', async (c) => {
    await readBody(c, createSessionRequest);
    return c.json({ type: 'create_session', session_id: sessions.open() });
  });
  app.post('/session_heartbeat', async (c) => {
    const { session_id } = await readBody(c, sessionRequest);
    if (!sessions.isOpen(session_id)) throw new TinkerError(404, 'Session not found');
    return c.json({ type: 'session_heartbeat' });
  });
  app.post('/sessions/:session/finish', (c) => {
    sessions.end(c.req.param('session'));
    return c.body(null, 204);
  });
  app.post('/retrieve_future', async (c) => {
    const { request_id } = await readBody(c, retrieveFutureRequest);
    const result = await futures.wait(request_id, retrieveWaitMs);
    if (result === undefined) throw new TinkerError(404, 'Future not found');
    if (result === 'dropped') throw new TinkerError(410, 'The result is no longer kept; its request was done');
    if (result === null) return c.json({ detail: 'Timeout waiting for result', queue_state: 'active' }, 408);
    if (result.status !== 200) throw new TinkerError(result.status, result.detail);
    if (result.type === 'json') return c.json(result.body);
    return c.body(new Uint8Array(result.bytes), 200, { 'content-type': protobufType });
  });
}
