import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { createEngines } from '../../../../../infra/engine/index.ts';
import { promptOf } from '../../../../../infra/engine/prompt.ts';
import { policyHeader } from '../../../../../infra/kits/embedded-policy/server/policies.ts';
import { readConfig } from '../../../../../infra/settings/config.ts';
import { startTestPolicy } from './policy-server.ts';

const [one, other] = ['11111111-1111-7111-8111-111111111111', '22222222-2222-7222-8222-222222222222'];
const shortOf = (runKey: string): string => runKey.slice(-12);

let server: Awaited<ReturnType<typeof startTestPolicy>>;
before(async () => {
  server = await startTestPolicy();
});
after(() => server.close());

/** The engine of a run's policy, as a machine with these settings uses it. */
function engineOf(runKey: string, settings: Readonly<Record<string, string>>) {
  const [engine = assert.fail()] = createEngines(readConfig(settings).pool, runKey);
  return engine;
}

it('serves each run its own policy, wherever the settings name the address of the policy server', async () => {
  const here = { TEMPER_POLICY_PORT: new URL(server.url).port };
  const elsewhere = { TEMPER_ENGINE_URLS: `${server.url}/` };
  const trainer = server.trainer();
  const modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
  const path = await trainer.saveForSampler(modelId, 'any', 1);
  trainer.close();
  const publish = (runKey: string, version: number, settings: Readonly<Record<string, string>>) =>
    engineOf(runKey, settings).publish({ version, name: `${shortOf(runKey)}-v${version}`, path, method: 'reload' });
  await publish(one, 3, here);
  await publish(other, 5, elsewhere);
  const versionAt = async (runKey: string, settings: Readonly<Record<string, string>>) => {
    const sampling = { maxTokens: 2, temperature: 1, topP: 1, topK: -1, stopTokenIds: [], seed: 7 };
    const request = { requestId: `${Math.random()}`, prompt: promptOf([1, 5, 9]), ...sampling };
    const versions = new Set<number>();
    for await (const event of engineOf(runKey, settings).generate(request, AbortSignal.timeout(240_000))) {
      for (const { version } of event.versions ?? []) versions.add(version);
    }
    return [...versions];
  };
  for (const settings of [here, elsewhere]) {
    assert.deepEqual([await versionAt(one, settings), await versionAt(other, settings)], [[3], [5]]);
  }
});

it('refuses a name that is no name of a policy', async () => {
  const reply = await fetch(`${server.url}/health`, { headers: { [policyHeader]: '../published.json' } });
  assert.deepEqual([reply.status, /x-temper-policy: expected letters/.test(await reply.text())], [400, true]);
});
