import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVllmEngine } from '../../../../../infra/engine/vllm.ts';
import { type PolicyServer, startPolicyServer } from '../../../../../infra/kits/embedded-policy/server/start.ts';
import { createTinkerTrainer } from '../../../../../infra/trainer/tinker.ts';

export const modelDir = join(import.meta.dirname, '../../../../../infra/tasks/generated/temper-tiny');

/** Starts a policy server on a root of its own, which can be restarted on the same port. */
export async function startTestPolicy() {
  const root = await mkdtemp(join(tmpdir(), 'temper-policy-'));
  let server: PolicyServer = await startPolicyServer({ port: 0, modelDir, root });
  const { url } = server;
  return {
    url,
    root,
    engine: () => createVllmEngine({ url, model: 'policy', method: 'reload' }),
    trainer: () =>
      createTinkerTrainer({ url, baseModel: 'policy', reduction: 'sum', checkpointsDir: join(root, 'checkpoints') }),
    /** Posts JSON, or bytes as protobuf. */
    async post(path: string, body: unknown, headers: Record<string, string> = {}) {
      const binary = body instanceof Uint8Array;
      const type = binary ? 'application/x-protobuf' : 'application/json';
      const content = binary ? Buffer.from(body) : JSON.stringify(body);
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': type, ...headers },
        body: content,
      });
      return { status: response.status, text: await response.text() };
    },
    /** Reads the server's log of the requests that changed a model. */
    async received(modelId: string) {
      const reply = await fetch(`${url}/temper/received?model=${modelId}`);
      const { entries } = (await reply.json()) as {
        readonly entries: readonly {
          readonly kind: string;
          readonly step: number;
          readonly digest: string;
          readonly checksum: string;
        }[];
      };
      return entries;
    },
    /** Returns the logprobs of given tokens: `score(tokens)[i]` is that of `tokens[i + 1]`. */
    async score(tokens: readonly number[]): Promise<readonly number[]> {
      const sampling_params = { max_tokens: 1, temperature: 0, prompt_logprobs: 0 };
      const body = JSON.stringify({ model: 'policy', token_ids: tokens, sampling_params });
      const headers = { 'content-type': 'application/json' };
      const reply = await fetch(`${url}/inference/v1/generate`, { method: 'POST', headers, body });
      const { prompt_logprobs: given } = (await reply.json()) as {
        readonly prompt_logprobs: readonly (Readonly<Record<string, { readonly logprob: number }>> | null)[];
      };
      return tokens.slice(1).map((id, index) => given[index + 1]?.[id]?.logprob ?? Number.NaN);
    },
    async restart() {
      await server.close();
      server = await startPolicyServer({ port: Number(new URL(url).port), modelDir, root });
    },
    async close() {
      await server.close();
      await rm(root, { recursive: true });
    },
  };
}
