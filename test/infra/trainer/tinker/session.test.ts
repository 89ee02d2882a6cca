import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createDirectory } from '../../../../infra/store/directory.ts';
import { createSessionRecord } from '../../../../infra/trainer/journal.ts';
import { createTinkerTrainer } from '../../../../infra/trainer/tinker.ts';
import { startScriptedServer } from '../../../helpers/engine/scripted-server.ts';
import { until } from '../../../helpers/until.ts';

/** Starts a trainer's server, and returns a function that opens another client of one run. */
async function startServer(t: TestContext) {
  /** `status` is the answer to heartbeats of a session that the server knows. */
  const state = { status: 200, known: new Set<string>(), sessions: 0, heartbeats: 0, models: [] as number[] };
  const isKnown = (body: unknown): boolean => state.known.has((body as { session_id: string }).session_id);
  const server = await startScriptedServer({
    'POST /api/v1/create_session': () => {
      const id = `s${++state.sessions}`;
      state.known.add(id);
      return { status: 200, json: { session_id: id } };
    },
    'POST /api/v1/session_heartbeat': (body) => {
      state.heartbeats += 1;
      return { status: isKnown(body) ? state.status : 404, json: { detail: 'busy' } };
    },
    'POST /api/v1/create_model': (body) => {
      if (!isKnown(body)) return { status: 404, json: { detail: 'Session not found' } };
      state.models.push((body as { model_seq_id: number }).model_seq_id);
      return { status: 200, json: { model_id: 'm', request_id: '1' } };
    },
    'POST /api/v1/retrieve_future': () => ({ status: 200, json: {} }),
  });
  const checkpointsDir = await mkdtemp(join(tmpdir(), 'temper-session-'));
  t.after(async () => {
    await server.close();
    await rm(checkpointsDir, { recursive: true });
  });
  const sessionRecord = createSessionRecord(createDirectory(checkpointsDir), 'run');
  const open = () => {
    const options = { url: server.url, baseModel: 'base', reduction: 'sum', checkpointsDir, sessionRecord } as const;
    const trainer = createTinkerTrainer(options);
    t.after(() => trainer.close());
    return trainer;
  };
  return { state, open, sessionRecord };
}

const model = { loraRank: 1, seed: 1 };

it('a session survives its process, and a server that no longer knows it gets a new one', async (t) => {
  const { state, open } = await startServer(t);
  const first = open();
  await first.createModel(model);
  first.close();
  const second = open();
  await second.createModel(model);
  assert.equal(state.sessions, 1);
  state.known.clear();
  await second.createModel(model);
  assert.equal(state.sessions, 2);
});

describe('the models of a session', () => {
  it('have numbers of their own, also after a restart and in the next session', async (t) => {
    const { state, open } = await startServer(t);
    const first = open();
    await first.createModel(model);
    await first.createModel(model);
    first.close();
    const second = open();
    await second.createModel(model);
    state.known.clear();
    await second.createModel(model);
    // The third of these numbers was for the session that the server no longer knew.
    assert.deepEqual(state.models, [0, 1, 2, 4]);
  });
});

describe('the session with a trainer that is busy', () => {
  it('is asked for again by the next process, which opens no other', async (t) => {
    const { state, open } = await startServer(t);
    const first = open();
    await first.createModel(model);
    first.close();
    state.status = 503;
    const second = open();
    await assert.rejects(second.createModel(model), { type: 'TrainerUnavailable', message: /session_heartbeat.*busy/ });
    state.status = 200;
    await second.createModel(model);
    assert.equal(state.sessions, 1);
  });

  it('gets further heartbeats, without which its models are unloaded', async (t) => {
    const { state, open } = await startServer(t);
    t.mock.timers.enable({ apis: ['setInterval'] });
    await open().createModel(model);
    for (const [status, heartbeats] of [
      [429, 1],
      [503, 2],
      [200, 3],
    ] as const) {
      state.status = status;
      t.mock.timers.tick(10_000);
      await until(() => state.heartbeats === heartbeats);
    }
  });
});
