import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type AgentPlace, createLoaderCheck } from '../../activities/host/loader.ts';

const signal = AbortSignal.timeout(10_000);

it('what an image holds is asked once, and an image without the loader is refused each time', async () => {
  const requireLoader = createLoaderCheck();
  let asked = 0;
  const placeOf = (image: string, exitCode: number): AgentPlace =>
    ({
      provider: { kind: 'docker', imageId: async (name: string) => `id of ${name}` },
      sandbox: {
        exec: async () => {
          asked += 1;
          return { exitCode, timedOut: false, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), truncated: false };
        },
      },
      spec: { name: 'codex', loader: '/lib64/ld-linux-x86-64.so.2' },
      image,
    }) as unknown as AgentPlace;
  const refused = { type: 'UnsupportedTask', message: /codex needs \/lib64\/ld-linux.* image alpine has none/ };

  await requireLoader(placeOf('debian', 0), signal);
  await requireLoader(placeOf('debian', 0), signal);
  assert.equal(asked, 1);
  await assert.rejects(requireLoader(placeOf('alpine', 1), signal), refused);
  await assert.rejects(requireLoader(placeOf('alpine', 1), signal), refused);
  assert.equal(asked, 3);
});
