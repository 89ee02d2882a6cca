import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { enginesWithout } from '../../activities/trainer/sync.ts';
import type { Engine } from '../../infra/engine/engine.ts';
import { createVllmEngine } from '../../infra/engine/vllm.ts';
import type { Trainer } from '../../infra/trainer/trainer.ts';
import { startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const never = new AbortController().signal;

describe('engines without a version', () => {
  let served: Awaited<ReturnType<typeof startTestPolicy>>;
  let empty: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  const away: string[] = [];
  const urlsWithout = async (version: number, engines: readonly Engine[]) =>
    (await enginesWithout(version, engines, ({ url }) => away.push(url), never)).map(({ url }) => url);

  before(async () => {
    served = await startTestPolicy();
    empty = await startTestPolicy();
    trainer = served.trainer();
    const modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
    const path = await trainer.saveForSampler(modelId, 'v3', 1);
    await served.engine().publish({ version: 3, name: 'v3', path, method: 'reload' });
  });
  after(async () => {
    trainer?.close();
    await served?.close();
    await empty?.close();
  });

  it('are those that hold their first weights or another version', async () => {
    const engines = [served.engine(), empty.engine()];
    assert.deepEqual(await urlsWithout(3, engines), [empty.url]);
    assert.deepEqual(await urlsWithout(4, engines), [served.url, empty.url]);
  });

  it('do not include an engine that restarted with the published version', async () => {
    await served.restart();
    assert.deepEqual(await urlsWithout(3, [served.engine()]), []);
  });

  it('do not include an engine that does not answer, because nothing could be published to it', async () => {
    const gone = createVllmEngine({ url: 'http://127.0.0.1:9', model: 'policy', method: 'reload' });
    assert.deepEqual(await urlsWithout(3, [gone, empty.engine()]), [empty.url]);
    assert.deepEqual(away, [gone.url]);
  });
});
