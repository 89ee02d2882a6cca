import { randomUUID } from 'node:crypto';
import type { Hono } from 'hono';
import {
  createSessionRequest,
  protobufType,
  retrieveFutureRequest,
  sessionRequest,
} from '../../../tinker-wire/index.ts';
import { bodyOf, Refusal, type State } from './state.ts';

/** SkyRL holds 300 s; the SDK gives up after 45 and asks again. */
const retrieveWaitMs = 30_000;

/** Sessions, futures, and what the SDK asks for before it begins. */
export function addServiceRoutes(app: Hono, { modelName, contextLength, sessions, futures }: State): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/get_server_capabilities', (c) =>
    c.json({ supported_models: [{ model_name: modelName, max_context_length: contextLength }] }),
  );
  app.post('/client/config', (c) => c.json({ pjwt_auth_enabled: false, use_pyqwest_transport: false }));
  app.post('/client/dynamic_config', (c) => c.json({ refresh_interval_sec: 300 }));
  app.post('/telemetry', (c) => c.json({ status: 'accepted' }));
  app.post('/create_session', async (c) => {
    await bodyOf(c, createSessionRequest);
    const sessionId = `session_${randomUUID().slice(0, 8)}`;
    sessions.add(sessionId);
    return c.json({ type: 'create_session', session_id: sessionId });
  });
  app.post('/session_heartbeat', async (c) => {
    const { session_id } = await bodyOf(c, sessionRequest);
    if (!sessions.has(session_id)) throw new Refusal(404, 'Session not found');
    return c.json({ type: 'session_heartbeat' });
  });
  app.post('/retrieve_future', async (c) => {
    const { request_id } = await bodyOf(c, retrieveFutureRequest);
    const outcome = await futures.wait(request_id, retrieveWaitMs);
    if (outcome === undefined) throw new Refusal(404, 'Future not found');
    if (outcome === 'dropped') throw new Refusal(410, 'The result is no longer kept; its request was done');
    if (outcome === null) return c.json({ detail: 'Timeout waiting for result', queue_state: 'active' }, 408);
    if (outcome.status !== 200) throw new Refusal(outcome.status, outcome.detail);
    if (outcome.type === 'json') return c.json(outcome.body);
    return c.body(new Uint8Array(outcome.bytes), 200, { 'content-type': protobufType });
  });
}
