import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createTrainerConnection } from '../../../../infra/trainer/tinker/connection.ts';
import { loadableWeights } from '../../../../infra/trainer/tinker/sampler-weights.ts';
import { type Answer, startScriptedServer } from '../../../helpers/engine/scripted-server.ts';
import { packTar } from '../../../helpers/tasks/tar.ts';

it('weights are downloaded with the key from the trainer itself, and without it from where else it points', async (t) => {
  const archive = gzipSync(await packTar([{ name: 'weights', content: 'x' }]));
  const file = { 'GET /file': (): Answer => ({ status: 200, bytes: archive, type: 'application/gzip' }) };
  const elsewhere = await startScriptedServer(file);
  const local = await mkdtemp(join(tmpdir(), 'temper-weights-'));
  const pointer = (location: string) => (): Answer => ({ status: 302, location });
  const trainer = await startScriptedServer({
    ...file,
    'GET /api/v1/training_runs/m/checkpoints/here/archive': pointer('/file'),
    'GET /api/v1/training_runs/m/checkpoints/there/archive': pointer(`${elsewhere.url}/file`),
  });
  t.after(() => Promise.all([trainer.close(), elsewhere.close(), rm(local, { recursive: true })]));
  const connection = createTrainerConnection(trainer.url, 'secret');
  for (const name of ['here', 'there']) {
    const path = await loadableWeights(
      connection,
      { modelId: 'm', kind: 'sampler_weights', name },
      { local, engine: '/engine' },
    );
    assert.equal(path, `/engine/unpacked/m-${name}`);
  }
  assert.deepEqual(
    [...trainer.seen, ...elsewhere.seen].map(({ route, apiKey }) => [route.replace(/.*\//, ''), apiKey]),
    [
      ['archive', 'secret'],
      ['file', 'secret'],
      ['archive', 'secret'],
      ['file', undefined],
    ],
  );
});
