import type { GenerateRequest } from './engine.ts';

/**
 * The sampling parameters that vLLM and SGLang name alike. All are sent: an omitted one would come from the model's
 * generation_config.json.
 */
export function commonSamplingParams(request: GenerateRequest) {
  return {
    temperature: request.temperature,
    top_p: request.topP,
    top_k: request.topK,
    min_p: 0,
    repetition_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    stop_token_ids: request.stopTokenIds,
    skip_special_tokens: false,
  };
}
