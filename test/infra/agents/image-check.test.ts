import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type AgentSandbox, createImageCheck } from '../../../infra/agents/image-check.ts';

const { signal } = new AbortController();

it('inspects an image once, and refuses an image without the loader each time', async () => {
  const requireOfImage = createImageCheck();
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

  await requireOfImage(agentIn('debian', 0), signal);
  await requireOfImage(agentIn('debian', 0), signal);
  assert.equal(asked, 1);
  await assert.rejects(requireOfImage(agentIn('alpine', 1), signal), refused);
  await assert.rejects(requireOfImage(agentIn('alpine', 1), signal), refused);
  assert.equal(asked, 3);
});

it('refuses an image that has none of the programs of which the agent starts one', async () => {
  const requireOfImage = createImageCheck();
  const asked: (readonly string[])[] = [];
  const agentIn = (image: string, exitCode: number): AgentSandbox =>
    ({
      provider: { kind: 'docker', imageId: async (name: string) => `id of ${name}` },
      sandbox: {
        exec: async ({ argv }: { readonly argv: readonly string[] }) => {
          asked.push(argv);
          return { exitCode, timedOut: false, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), truncated: false };
        },
      },
      spec: { name: 'terminal', programs: ['script', 'python3'] },
      image,
    }) as unknown as AgentSandbox;
  await requireOfImage(agentIn('debian', 0), signal);
  await requireOfImage(agentIn('debian', 0), signal);
  assert.deepEqual(
    asked.map((argv) => argv.slice(-2)),
    [['script', 'python3']],
  );
  await assert.rejects(requireOfImage(agentIn('scratch', 1), signal), {
    type: 'UnsupportedTask',
    message:
      'agent terminal needs script or python3 in the image, and image scratch lacks all of them; install one of them in the image or take another agent',
  });
});
