import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { decodeRequest, encodeOutput } from '../../../infra/kits/tinker-wire/index.ts';
import { createTinkerTrainer, type TinkerOptions } from '../../../infra/trainer/tinker.ts';
import type { Datum, ForwardBackward } from '../../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type Answer, startScriptedServer } from '../../helpers/engine/scripted-server.ts';
import { type HeaderArgument, packTar } from '../../helpers/tasks/tar.ts';

type Routes = Readonly<Record<string, (body: unknown) => Answer>>;
const protobuf = 'application/x-protobuf';
const future = (id = '1'): Answer => ({ status: 200, json: { request_id: id } });
const output = { type: 'scalar', outputs: [{ logprobs: [-1, -2] }], metrics: {} };
const result = (): Answer => ({ status: 200, bytes: encodeOutput(output), type: protobuf });
const datum: Datum = { tokens: [4, 5], targets: [5, 6], weights: [0, 1], logprobs: [0, -0.5], advantages: [0, 2] };
const request: ForwardBackward = { modelId: 'm', sequence: 3, data: [datum], loss: 'ppo' };
const step = { modelId: 'm', sequence: 4, learningRate: 1, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 };

async function trainerOn(t: TestContext, routes: Routes, options: Partial<TinkerOptions> = {}) {
  const server = await startScriptedServer(routes);
  const checkpointsDir = await mkdtemp(join(tmpdir(), 'temper-checkpoints-'));
  const base = { url: server.url, baseModel: 'base', reduction: 'sum', checkpointsDir } as const;
  const trainer = createTinkerTrainer({ ...base, ...options });
  t.after(async () => {
    trainer.close();
    await server.close();
    await rm(checkpointsDir, { recursive: true });
  });
  return { server, trainer, checkpointsDir };
}

function failsWith(type: string, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof TemperFailure, String(error));
    assert.equal(error.type, type);
    assert.match(error.message, message);
    return true;
  };
}

/** Answers as a current server: refuses JSON, and sends the result as protobuf. */
const currentWire = (body: unknown): Answer =>
  body instanceof Uint8Array ? future() : { status: 415, json: { detail: 'protobuf only' } };

describe('forward_backward', () => {
  it('is protobuf if the server requires it, negotiated once', async (t) => {
    const { server, trainer } = await trainerOn(t, {
      'POST /api/v1/forward_backward': currentWire,
      'POST /api/v1/retrieve_future': result,
    });
    assert.deepEqual((await trainer.forwardBackward(request)).logprobs, [[-1, -2]]);
    await trainer.forwardBackward(request);
    const bodies = server.seen.filter(({ route }) => route.endsWith('forward_backward')).map(({ body }) => body);
    assert.equal(bodies.length, 3);
    const sent = decodeRequest(bodies[1] as Uint8Array);
    assert.deepEqual([sent.modelId, sent.sequence, sent.loss, sent.forwardOnly], ['m', 3, 'ppo', false]);
    assert.deepEqual(sent.data[0]?.inputs.advantages, { dtype: 'float32', data: [0, 2] });
    assert.deepEqual(sent.data[0]?.inputs.target_tokens, { dtype: 'int64', data: [5, 6] });
  });

  it('is JSON if the server supports nothing else, with a separate route for forward only', async (t) => {
    const json = {
      loss_fn_output_type: '',
      loss_fn_outputs: [{ logprobs: { data: [-1, -2] } }],
      metrics: { 'l:sum': 1 },
    };
    const { server, trainer } = await trainerOn(t, {
      'POST /api/v1/forward_backward': (body) =>
        Object.keys(body as object).length === 0 ? { status: 422, json: { detail: [] } } : future(),
      'POST /api/v1/forward': () => future(),
      'POST /api/v1/retrieve_future': () => ({ status: 200, json }),
    });
    assert.deepEqual(await trainer.forwardBackward(request), { logprobs: [[-1, -2]], metrics: { 'l:sum': 1 } });
    await trainer.forwardBackward({ ...request, forwardOnly: true });
    assert.partialDeepStrictEqual(server.seen[1]?.body, {
      model_id: 'm',
      forward_backward_input: { loss_fn: 'ppo', data: [{ loss_fn_inputs: { weights: { data: [0, 1] } } }] },
    });
    assert.equal(server.seen.at(-2)?.route, 'POST /api/v1/forward');
  });

  it('is negotiated again with a server that was only starting', async (t) => {
    const json = { loss_fn_output_type: '', loss_fn_outputs: [{ logprobs: { data: [-1, -2] } }], metrics: {} };
    let starts = true;
    const { trainer } = await trainerOn(t, {
      'POST /api/v1/forward_backward': (body) => {
        if (starts) return { status: 503, json: { detail: 'starting' } };
        const isWhole = !(body instanceof Uint8Array) && Object.keys(body as object).length > 0;
        return isWhole ? future() : { status: 422, json: { detail: 'JSON only' } };
      },
      'POST /api/v1/retrieve_future': () => ({ status: 200, json }),
    });
    await assert.rejects(trainer.forwardBackward(request), failsWith('TrainerUnavailable', /starting/));
    starts = false;
    assert.deepEqual((await trainer.forwardBackward(request)).logprobs, [[-1, -2]]);
  });

  it('scales advantages by datums and weights if the server takes means', async (t) => {
    const routes = { 'POST /api/v1/forward_backward': currentWire, 'POST /api/v1/retrieve_future': result };
    const { server, trainer } = await trainerOn(t, routes, { reduction: 'datum-mean' });
    const two = { ...datum, weights: [1, 1], logprobs: [-1, -0.5], advantages: [1, 2] };
    await trainer.forwardBackward({ ...request, data: [two], datumsInStep: 5 });
    const sent = decodeRequest(server.seen[1]?.body as Uint8Array);
    assert.deepEqual(sent.data[0]?.inputs.advantages?.data, [10, 20]);
  });

  const wrong: readonly (readonly [string, Partial<Datum>, RegExp])[] = [
    ['no logprobs', { logprobs: undefined as never }, /data\[0\]\.logprobs: expected 2 numbers for ppo, got none/],
    ['a positive logprob', { logprobs: [0, 0.5] }, /logprobs\[1\]: expected finite logprobs, got 0.5/],
    ['an advantage that is not finite', { advantages: [0, Number.NaN] }, /advantages\[1\].*got NaN/],
    ['too few weights', { weights: [1] }, /weights: expected 2 entries, got 1/],
    ['a negative weight', { weights: [-1, 1] }, /weights\[0\].*got -1/],
    ['targets that are not shifted', { targets: [4, 6] }, /targets\[0\]: expected the next input 5, got 4/],
    ['no weight at all', { weights: [0, 0] }, /at least one token with a weight/],
    ['a token id that is not an integer', { tokens: [4.5, 5] }, /tokens\[0\]: expected token ids, got 4.5/],
  ];
  for (const [what, change, message] of wrong) {
    it(`is not sent with ${what}`, async (t) => {
      const { server, trainer } = await trainerOn(t, {});
      const data = [{ ...datum, ...change }];
      await assert.rejects(trainer.forwardBackward({ ...request, data }), failsWith('TrainerRefused', message));
      assert.deepEqual(server.seen, []);
    });
  }

  it('refuses a reply without a finite logprob per target', async (t) => {
    const bad = encodeOutput({ ...output, outputs: [{ logprobs: [-1, Number.NaN] }] });
    const { trainer } = await trainerOn(t, {
      'POST /api/v1/forward_backward': currentWire,
      'POST /api/v1/retrieve_future': () => ({ status: 200, bytes: bad, type: protobuf }),
    });
    await assert.rejects(trainer.forwardBackward(request), failsWith('TrainerRefused', /expected 2 finite logprobs/));
  });
});

describe('futures', () => {
  const stepping = (answers: Answer[]): Routes => {
    let requests = 0;
    return {
      'POST /api/v1/optim_step': () => future(String(++requests)),
      'POST /api/v1/retrieve_future': () => answers.shift() ?? { status: 200, json: { metrics: { grad_norm: 3 } } },
    };
  };

  it('are polled until they are done', async (t) => {
    const pending = [
      { status: 408, json: { detail: 'wait' } },
      { status: 200, json: { type: 'try_again' } },
    ];
    const { trainer } = await trainerOn(t, stepping(pending));
    assert.deepEqual(await trainer.optimStep(step), { grad_norm: 3 });
  });

  it('are submitted once more under the same sequence when the server has lost them', async (t) => {
    const { server, trainer } = await trainerOn(t, stepping([{ status: 410, json: { detail: 'gone' } }]));
    assert.deepEqual(await trainer.optimStep(step), { grad_norm: 3 });
    const posts = server.seen.filter(({ route }) => route.endsWith('optim_step'));
    assert.equal(posts.length, 2);
    assert.deepEqual(posts[0]?.body, posts[1]?.body);
    assert.deepEqual(server.seen.at(-1)?.body, { request_id: '2' });
  });

  it('are asked for again after a 500, which may have been that of the server alone', async (t) => {
    const locked = { status: 500, json: { detail: 'database is locked' } };
    const { server, trainer } = await trainerOn(t, stepping([locked, locked]));
    assert.deepEqual(await trainer.optimStep(step), { grad_norm: 3 });
    assert.equal(server.seen.filter(({ route }) => route.endsWith('optim_step')).length, 1);
  });

  const failures: readonly (readonly [string, Answer, string, RegExp])[] = [
    ['400', { status: 400, json: { detail: 'bad datum' } }, 'TrainerRefused', /bad datum/],
    [
      'a failure in a 200',
      { status: 200, json: { error: 'bad datum', category: 'user' } },
      'TrainerRefused',
      /bad datum/,
    ],
    [
      'a model not loaded',
      { status: 400, json: { detail: 'Model m not loaded' } },
      'TrainerLostModel',
      /load the last/,
    ],
    ['429', { status: 429, json: { detail: 'slow down' } }, 'TrainerUnavailable', /slow down/],
    ['503', { status: 503, json: { detail: 'starting' } }, 'TrainerUnavailable', /starting/],
  ];
  for (const [what, answer, type, message] of failures) {
    it(`that end in ${what} are ${type}`, async (t) => {
      const { trainer } = await trainerOn(t, stepping([answer]));
      await assert.rejects(trainer.optimStep(step), failsWith(type, message));
    });
  }

  it('of an unreachable trainer are TrainerUnavailable', async (t) => {
    const { server, trainer } = await trainerOn(t, {});
    await server.close();
    await assert.rejects(trainer.optimStep(step), failsWith('TrainerUnavailable', /ECONNREFUSED/));
  });

  it('end with the signal’s reason', async (t) => {
    const { trainer } = await trainerOn(t, { 'POST /api/v1/optim_step': () => ({ hang: true }) });
    const leaving = new AbortController();
    const reason = new Error('the activity was cancelled');
    setTimeout(() => leaving.abort(reason), 50);
    await assert.rejects(trainer.optimStep(step, leaving.signal), reason);
  });
});

describe('saving', () => {
  const exists = { status: 409, json: { detail: "Checkpoint 'a' already exists for model 'm'" } };
  const saved = { status: 200, json: { path: 'tinker://m/weights/a' } };

  it('under an existing name waits until that checkpoint is complete', async (t) => {
    const states: Answer[] = [{ status: 425, json: { detail: 'still being created' } }];
    const { trainer } = await trainerOn(t, {
      'POST /api/v1/save_weights': () => exists,
      'POST /api/v1/weights_info': () => states.shift() ?? { status: 200, json: {} },
    });
    assert.equal(await trainer.save('m', 'a', 1), 'tinker://m/weights/a');
  });

  it('deletes a checkpoint whose saving failed, and saves again', async (t) => {
    const answers: Answer[] = [exists];
    const { server, trainer } = await trainerOn(t, {
      'POST /api/v1/save_weights': () => answers.shift() ?? future(),
      'POST /api/v1/weights_info': () => ({ status: 500, json: { detail: 'Checkpoint creation failed: disk' } }),
      'DELETE /api/v1/training_runs/m/checkpoints/weights/a': () => ({ status: 200, json: {} }),
      'POST /api/v1/retrieve_future': () => saved,
    });
    assert.equal(await trainer.save('m', 'a', 1), 'tinker://m/weights/a');
    assert.ok(server.seen.some(({ route }) => route.startsWith('DELETE ')));
  });
});

describe('weights for the engine', () => {
  const samplerRoutes: Routes = {
    'POST /api/v1/save_weights_for_sampler': () => future(),
    'POST /api/v1/retrieve_future': () => ({ status: 200, json: { path: 'tinker://m/v1' } }),
  };
  const archived = async (t: TestContext, entries: readonly HeaderArgument[]) => {
    const made = await trainerOn(t, samplerRoutes, { engineCheckpointsDir: '/engine' });
    await mkdir(join(made.checkpointsDir, 'm/sampler_weights'), { recursive: true });
    const archive = join(made.checkpointsDir, 'm/sampler_weights/v1.tar.gz');
    await writeFile(archive, gzipSync(await packTar(entries)));
    return made;
  };

  it('are unpacked whole from an archive, and their path is as the engine sees it', async (t) => {
    const { trainer, checkpointsDir } = await archived(t, [{ name: '/adapter_config.json', content: '{}' }]);
    assert.equal(await trainer.saveForSampler('m', 'v1', 1), '/engine/unpacked/m-v1');
    assert.equal(await trainer.saveForSampler('m', 'v1', 2), '/engine/unpacked/m-v1');
    assert.deepEqual(await readdir(join(checkpointsDir, 'unpacked')), ['m-v1']);
    assert.equal(await readFile(join(checkpointsDir, 'unpacked/m-v1/adapter_config.json'), 'utf8'), '{}');
  });

  const hostile: readonly HeaderArgument[] = [
    { name: '../../escape', content: 'x' },
    { name: 'link', type: 'symlink', linkname: '/etc/passwd' },
  ];
  for (const entry of hostile) {
    it(`refuse an archive with "${entry.name}" and leave nothing behind`, async (t) => {
      const { trainer, checkpointsDir } = await archived(t, [{ name: 'fine', content: 'x' }, entry]);
      await assert.rejects(trainer.saveForSampler('m', 'v1', 1), failsWith('TrainerRefused', /plain files below it/));
      assert.deepEqual(await readdir(join(checkpointsDir, 'unpacked')), []);
    });
  }

  it('are the directory itself if the server writes one', async (t) => {
    const { trainer, checkpointsDir } = await trainerOn(t, samplerRoutes);
    const directory = join(checkpointsDir, 'm/sampler_weights/v1');
    await mkdir(directory, { recursive: true });
    assert.equal(await trainer.saveForSampler('m', 'v1', 1), directory);
  });
});
