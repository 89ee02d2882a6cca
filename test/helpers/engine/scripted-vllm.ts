import { z } from 'zod';
import { type ScriptedServer, startScriptedServer } from './scripted-server.ts';

const generateBody = z.object({ token_ids: z.array(z.number()) });
/** Tokens of one streamed chunk. */
const chunkTokens = 64;

export interface VllmState {
  readonly isPaused?: () => boolean;
  /** Whether a reply never ends after its tokens. */
  readonly isEndless?: () => boolean;
}

/** Starts a server with vLLM's API that serves the model `policy` at version 1, with a function in place of weights. */
export function startScriptedVllm(
  answer: (promptIds: readonly number[]) => Promise<readonly number[]>,
  { isPaused = () => false, isEndless = () => false }: VllmState = {},
): Promise<ScriptedServer> {
  return startScriptedServer({
    'GET /health': () => ({ status: 200, json: {} }),
    'GET /v1/models': () => ({ status: 200, json: { data: [{ id: 'policy', max_model_len: 1_000_000 }] } }),
    'GET /is_paused': () => ({ status: 200, json: { is_paused: isPaused() } }),
    'GET /weight_info': () => ({ status: 200, json: { weight_version: '1@scripted' } }),
    'POST /inference/v1/generate': async (body) => {
      const chunks = [...generation(await answer(generateBody.parse(body).token_ids))];
      return isEndless() ? { events: chunks.slice(0, -1), open: true } : { events: [...chunks, '[DONE]'] };
    },
  });
}

function* generation(ids: readonly number[]): Iterable<string> {
  for (let at = 0; at < ids.length; at += chunkTokens) {
    const some = ids.slice(at, at + chunkTokens);
    const content = some.map((id) => ({ token_id: id, logprob: -0.5 }));
    yield chunk({ token_ids: some, logprobs: { content }, finish_reason: null });
  }
  const spans = [{ version: '1@scripted', start: 0, end: ids.length }];
  yield chunk({ token_ids: [], logprobs: null, finish_reason: 'stop', weight_versions: spans });
}

const chunk = (choice: object): string => JSON.stringify({ choices: [{ index: 0, ...choice }] });
