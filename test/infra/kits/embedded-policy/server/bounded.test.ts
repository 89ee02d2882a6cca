import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createFutures, futureLimits } from '../../../../../infra/kits/embedded-policy/server/tinker/futures.ts';
import { openReceivedLog } from '../../../../../infra/kits/embedded-policy/server/tinker/received.ts';
import { bytesResult, jsonResult } from '../../../../../infra/kits/embedded-policy/server/tinker/results.ts';
import { createSessions } from '../../../../../infra/kits/embedded-policy/server/tinker/sessions.ts';
import { startTestPolicy } from './policy-server.ts';

describe('the futures of a policy server that lives long', () => {
  const key = (sequence: number | null, scope = 'model') => ({ scope, sequence, kind: 'step', payload: { sequence } });
  const small = async () => jsonResult({});
  const large = async () => bytesResult(Buffer.alloc(2 ** 20));
  /** Submits a request and waits until it is done. */
  const done = async (futures: ReturnType<typeof createFutures>, ...given: Parameters<typeof futures.submit>) => {
    const id = futures.submit(...given);
    assert.ok(id !== null);
    await futures.wait(id, 1000);
    return id;
  };

  it('remember the last requests of a scope, and refuse what came long before instead of doing it again', async () => {
    const futures = createFutures();
    const first = await done(futures, key(1), small);
    for (let sequence = 2; sequence <= futureLimits.perScope + 1; sequence += 1)
      await done(futures, key(sequence), small);
    assert.equal(futures.size(), futureLimits.perScope);
    assert.equal(
      futures.submit(key(1), () => assert.fail('expected the request not to be done again')),
      null,
    );
    assert.equal(await futures.wait(first, 0), undefined);
    assert.equal(typeof futures.earlier(key(2)), 'string');
  });

  it('keep no memory beside a small result, so that the bytes that are counted are those that are kept', async () => {
    const futures = createFutures();
    const pooled = Buffer.from('a small result');
    assert.ok(pooled.buffer.byteLength > pooled.length, 'expected a buffer from the pool of Node');
    const id = await done(futures, key(1), async () => bytesResult(pooled));
    const result = await futures.wait(id, 0);
    assert.ok(typeof result === 'object' && result?.status === 200 && result.type === 'protobuf');
    assert.deepEqual([result.bytes.toString(), result.bytes.buffer.byteLength], ['a small result', pooled.length]);
  });

  it('remember requests of one scope however many others come', async () => {
    const futures = createFutures();
    const first = await done(futures, key(1), small);
    for (let index = 0; index < futureLimits.others + 2; index += 1) {
      const other = index % 2 === 0 ? key(null) : { ...key(index, 'sampling'), repeatable: true as const };
      await done(futures, other, small);
    }
    assert.equal(futures.earlier(key(1)), first);
    assert.equal(futures.size(), futureLimits.others + 1);
    assert.equal(
      futures.earlier({ ...key(1, 'sampling'), repeatable: true }),
      undefined,
      'expected it to be repeatable',
    );
  });

  it('keep a result that no client has read, and of those that were read the last', async () => {
    const futures = createFutures();
    const ids = Array.from({ length: 40 }, (_, sequence) => futures.submit(key(sequence), large) ?? assert.fail());
    for (const id of ids) assert.equal(typeof (await futures.wait(id, 1000)), 'object');
    assert.equal(await futures.wait(ids[0] ?? '', 0), 'dropped');
    assert.equal(typeof (await futures.wait(ids.at(-1) ?? '', 0)), 'object');
    assert.equal(futures.earlier(key(0)), ids[0], 'expected its request to be known still');
  });

  it('end with a scope that is forgotten, but for results that may still be read', async () => {
    const futures = createFutures();
    const id = await done(futures, key(1), small);
    futures.forget('model');
    assert.equal(futures.earlier(key(1)), undefined);
    assert.deepEqual(await futures.wait(id, 0), jsonResult({}));
    for (let index = 0; index < futureLimits.others; index += 1) await done(futures, key(null), small);
    assert.equal(await futures.wait(id, 0), undefined);
  });
});

describe('the sessions of a policy server that lives long', () => {
  it('end an hour after the last heartbeat, with their sampling sessions', () => {
    let nowMs = 0;
    const ended: string[] = [];
    const sessions = createSessions(
      (session) => void ended.push(session),
      () => nowMs,
    );
    const [silent, alive] = [sessions.open(), sessions.open()];
    const sampling = sessions.openSampling({ session: silent, directory: null, path: null });
    nowMs = 3_000_000;
    assert.equal(sessions.isOpen(alive), true);
    nowMs = 3_700_000;
    sessions.open();
    assert.deepEqual(ended, [silent]);
    assert.equal(sessions.isOpen(silent), false);
    assert.equal(sessions.sampling(sampling), undefined);
  });

  it('keep the last sampling sessions that were used', () => {
    const sessions = createSessions(() => undefined);
    const session = sessions.open();
    const open = () => sessions.openSampling({ session, directory: null, path: null });
    const [used, unused] = [open(), open()];
    for (let index = 0; index < 1500; index += 1) {
      open();
      assert.ok(sessions.sampling(used));
    }
    assert.equal(sessions.sampling(unused), undefined);
  });
});

describe('the log of what a policy server received', () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-received-'));
  });
  after(() => rm(root, { recursive: true, force: true }));
  const entry = (step: number) => ({
    modelId: 'model',
    sequence: step,
    kind: 'optim_step' as const,
    step,
    digest: null,
    checksum: null,
    path: null,
  });

  it('has the last entries in two files of limited size, also after a crash in the middle of a line', async () => {
    const path = join(root, 'received.jsonl');
    let log = await openReceivedLog(path, 10_000);
    for (let step = 1; step <= 300; step += 1) await log.append(entry(step));
    await log.close();
    await appendFile(path, '{"cut":');
    log = await openReceivedLog(path, 10_000);
    await log.append(entry(301));
    const steps = (await log.entries('model')).map(({ step }) => step);
    await log.close();
    assert.ok(steps.length > 70 && steps.length < 200, `${steps.length} entries`);
    assert.deepEqual(
      steps,
      Array.from({ length: steps.length }, (_, index) => 302 - steps.length + index),
    );
    assert.deepEqual((await readdir(root)).sort(), ['received.jsonl', 'received.old.jsonl']);
  });
});

describe('a client that finishes its session', () => {
  it('unloads the models of the session, and of no other', async () => {
    const policy = await startTestPolicy();
    try {
      const create = async () => {
        const opened = await policy.post('/api/v1/create_session', { tags: [], sdk_version: '0.38.0' });
        const { session_id } = JSON.parse(opened.text);
        const made = await policy.post('/api/v1/create_model', { session_id, base_model: 'policy' });
        const { model_id, request_id } = JSON.parse(made.text);
        await policy.post('/api/v1/retrieve_future', { request_id });
        return { session_id, model_id };
      };
      const [first, second] = [await create(), await create()];
      assert.equal((await policy.post(`/api/v1/sessions/${first.session_id}/finish`, {})).status, 204);
      const info = async (model_id: string) => (await policy.post('/api/v1/get_info', { model_id })).status;
      assert.deepEqual([await info(first.model_id), await info(second.model_id)], [404, 200]);
      const step = { model_id: first.model_id, seq_id: 1, adam_params: {} };
      const { request_id } = JSON.parse((await policy.post('/api/v1/optim_step', step)).text);
      const failed = await policy.post('/api/v1/retrieve_future', { request_id });
      assert.match(`${failed.status} ${failed.text}`, /^400 .*not loaded/);
    } finally {
      await policy.close();
    }
  });
});
