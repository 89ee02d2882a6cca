import { checkedLogprobs, invalid } from './checks.ts';
import { bodyOf, type EngineConnection, engineTimeouts, lacksRoute } from './connection.ts';
import { completionsRoute, generateRoute } from './generate.ts';
import { completionReply, generateReply, type PromptLogprobs } from './wire.ts';

/** Logprobs of given tokens under a served model; `result[i]` belongs to `tokenIds[i + 1]`. */
export async function scoreOver(
  connection: EngineConnection,
  model: string,
  tokenIds: readonly number[],
  signal?: AbortSignal,
): Promise<readonly number[]> {
  const sampling = { max_tokens: 1, temperature: 0, prompt_logprobs: 0 };
  const body = { model, token_ids: tokenIds, sampling_params: sampling };
  const reply = await connection.post(generateRoute.path, body, engineTimeouts.scoreMs, signal);
  if (!lacksRoute(reply)) {
    return promptScores(generateReply.parse(bodyOf(reply, 'score')).prompt_logprobs, tokenIds, connection.url);
  }
  const asCompletion = { model, prompt: tokenIds, ...sampling };
  const completion = await connection.post(completionsRoute.path, asCompletion, engineTimeouts.scoreMs, signal);
  const [choice] = completionReply.parse(bodyOf(completion, 'score')).choices;
  return promptScores(choice?.prompt_logprobs, tokenIds, connection.url);
}

function promptScores(given: PromptLogprobs, tokenIds: readonly number[], where: string): readonly number[] {
  if (given?.length !== tokenIds.length) {
    throw invalid(`${where}: expected prompt logprobs of ${tokenIds.length} tokens, got ${given?.length ?? 'none'}`);
  }
  const targets = tokenIds.slice(1);
  const logprobs = targets.map((id, index) => given[index + 1]?.[String(id)]?.logprob);
  return checkedLogprobs(targets, logprobs, `${where} (score)`);
}
