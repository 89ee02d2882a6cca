import { z } from 'zod';

// The JSON bodies of the Tinker API, for both ends. Unknown keys are ignored.

const id = z.string().min(1);
const sequence = z.number().int().min(0).nullish();
/** The id of a model. It is one path segment, and holds colons where it is derived from its session. */
export const modelId = z
  .string()
  .max(255)
  .regex(/^[a-zA-Z0-9_:-]+$/);
/** The name of a checkpoint: one path segment. */
export const checkpointName = z
  .string()
  .max(255)
  .regex(/^[a-zA-Z0-9_-]+$/);

export const createSessionRequest = z.object({
  tags: z.array(z.string()),
  user_metadata: z.record(z.string(), z.unknown()).nullish(),
  sdk_version: z.string(),
});
export const createSessionResponse = z.object({ session_id: id });
export const sessionRequest = z.object({ session_id: id });

/** The optimizer of a model. AdamW's settings come with each step; another family sends `optimizer_params` instead. */
const optimizerConfig = z.object({ type: z.string() }).nullish();

export const createModelRequest = z.object({
  session_id: id,
  model_seq_id: z.number().int().nullish(),
  base_model: id,
  lora_config: z.object({ rank: z.number().int().min(0), seed: z.number().int().nullish() }).nullish(),
  optimizer_config: optimizerConfig,
});
export const createModelResponse = z.object({ model_id: id, request_id: id });

export const modelRequest = z.object({ model_id: id });

export const adamParams = z.object({
  learning_rate: z.number().min(0).default(1e-4),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.95),
  eps: z.number().positive().default(1e-12),
  weight_decay: z.number().min(0).default(0),
  grad_clip_norm: z.number().min(0).default(0),
});
export const optimStepRequest = z.object({
  model_id: id,
  seq_id: sequence,
  adam_params: adamParams.nullish(),
  optimizer_params: z.object({ type: z.string() }).nullish(),
});

export const saveWeightsRequest = z.object({ model_id: id, path: checkpointName, seq_id: sequence });
/** Loads weights into a model or, if it names a session instead, creates the session's model `model_seq_id` with them. */
export const loadWeightsRequest = z
  .object({
    model_id: id.nullish(),
    seq_id: sequence,
    session_id: id.nullish(),
    model_seq_id: sequence,
    base_model: z.string().nullish(),
    path: z.string(),
    optimizer: z.boolean().default(true),
    optimizer_config: optimizerConfig,
  })
  .refine(
    ({ model_id, session_id, model_seq_id }) => model_id != null || (session_id != null && model_seq_id != null),
    'expected model_id, or session_id and model_seq_id',
  );

/** The id of a model that was created with weights; client and server both derive it. */
export function createdModelId(sessionId: string, modelSequence: number): string {
  return `${sessionId}:train:${modelSequence}`;
}

export const saveForSamplerRequest = z
  .object({
    model_id: id,
    path: checkpointName.nullish(),
    sampling_session_seq_id: z.number().int().nullish(),
    kind: z.string().default('snapshot'),
    seq_id: sequence,
  })
  .refine(
    ({ path, sampling_session_seq_id, seq_id }) =>
      typeof path === 'string' || (sampling_session_seq_id ?? seq_id) != null,
    'expected path, or sampling_session_seq_id and seq_id',
  );

export const createSamplingSessionRequest = z.object({
  session_id: id,
  sampling_session_seq_id: z.number().int(),
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
});

export const sampleRequest = z.object({
  prompt: z.object({
    chunks: z.array(
      z.object({ type: z.literal('encoded_text').default('encoded_text'), tokens: z.array(z.number().int().min(0)) }),
    ),
  }),
  num_samples: z.number().int().min(1).max(1024).default(1),
  sampling_params: z.object({
    max_tokens: z.number().int().min(1),
    temperature: z.number().min(0).default(1),
    top_p: z.number().gt(0).max(1).default(1),
    top_k: z.number().int().default(-1),
    seed: z.number().int().nullish(),
    stop: z.union([z.array(z.number().int()), z.array(z.string()), z.string()]).nullish(),
  }),
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
  sampling_session_id: z.string().nullish(),
  seq_id: sequence,
  prompt_logprobs: z.boolean().nullish(),
  prompt_logprobs_last_n: z.number().int().min(1).nullish(),
  topk_prompt_logprobs: z.number().int().default(0),
  topk_sample_logprobs: z.number().int().default(0),
  prompt_alt_tokens_k: z.number().int().default(0),
  target_prompt_logprobs: z.unknown().optional(),
  record_stability_info: z.boolean().nullish(),
});

export const retrieveFutureRequest = z.object({ request_id: id });
export const weightsInfoRequest = z.object({ tinker_path: z.string() });

/** The reply to every write: the id of its future. */
export const futureResponse = z.object({ request_id: id });

export const tryAgain = z.object({ type: z.literal('try_again') });
export const failedFuture = z.object({ error: z.string() });
export const savedWeights = z.object({ path: z.string() });
export const optimStepResult = z.object({ metrics: z.record(z.string(), z.number()).nullish() });

/**
 * Parses `tinker://<model>/<kind>/<name>`, where the kind may be omitted for sampler weights. Returns null for any other path.
 */
export function parseTinkerPath(
  path: string,
): { readonly modelId: string; readonly kind: 'weights' | 'sampler_weights'; readonly name: string } | null {
  const parts = /^tinker:\/\/([a-zA-Z0-9_:-]{1,255})(?:\/(weights|sampler_weights))?\/([a-zA-Z0-9_-]{1,255})$/.exec(
    path,
  );
  const [, modelId, kind, name] = parts ?? [];
  if (modelId === undefined || name === undefined) return null;
  return { modelId, kind: kind === 'weights' ? 'weights' : 'sampler_weights', name };
}
