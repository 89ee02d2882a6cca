import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type AgentSandbox, createLoaderCheck } from '../../../infra/agents/loader-check.ts';

const { signal } = new AbortController();

it('inspects an image once, and refuses an image without the loader each time', async () => {
  const requireLoader = createLoaderCheck();
  let asked = 0;
  const agentIn = (image: string, exitCode: number): AgentSandbox =>
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
    }) as unknown as AgentSandbox;
  const refused = { type: 'UnsupportedTask', message: /codex needs \/lib64\/ld-linux.* image alpine has none/ };

  await requireLoader(agentIn('debian', 0), signal);
  await requireLoader(agentIn('debian', 0), signal);
  assert.equal(asked, 1);
  await assert.rejects(requireLoader(agentIn('alpine', 1), signal), refused);
  await assert.rejects(requireLoader(agentIn('alpine', 1), signal), refused);
  assert.equal(asked, 3);
});
