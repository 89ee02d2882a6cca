import { jsonOf } from '../http/client.ts';
import {
  createModelResponse,
  decodeOutput,
  encodeRequest,
  optimStepResult,
  outputFromJson,
  requestJson,
  type WireForwardBackward,
} from '../kits/tinker-wire/index.ts';
import type { SessionRecord } from './journal.ts';
import { removeCheckpoint, saveOnce } from './tinker/checkpoints.ts';
import {
  createTrainerConnection,
  failureOf,
  isProtobuf,
  isTransient,
  parseReply,
  refused,
  type TrainerConnection,
} from './tinker/connection.ts';
import { wireRequest } from './tinker/datums.ts';
import { loadableWeights } from './tinker/sampler-weights.ts';
import { createSession, type TrainerSession } from './tinker/session.ts';
import type { ForwardBackward, ForwardBackwardResult, OptimStep, Trainer } from './trainer.ts';

export interface TinkerOptions {
  readonly url: string;
  /** Name of the server's base model. */
  readonly baseModel: string;
  readonly reduction: 'sum' | 'datum-mean';
  readonly apiKey?: string | undefined;
  /** The directory of the server's checkpoints as this process sees it; archives are unpacked below it. */
  readonly checkpointsDir: string;
  /** The same directory as the engine sees it, if that differs. */
  readonly engineCheckpointsDir?: string;
  /** Keeps the session id, so that models outlive this process. */
  readonly sessionRecord?: SessionRecord;
}

/**
 * Drives a trainer behind the Tinker API: SkyRL 0.4, the hosted service, the embedded policy.
 *
 * Guarantees: no malformed request is sent; a request sent again under its sequence id is done once, if the server
 * de-duplicates; saving under the name of an existing checkpoint succeeds. Not covered: `gradClipNorm` at SkyRL 0.4, which
 * ignores it; retries of `createModel`, which leave an unused model behind; `load` on a model that had any request.
 */
export function createTinkerTrainer(options: TinkerOptions): Trainer {
  const { baseModel, reduction, apiKey = 'tml-local', checkpointsDir, engineCheckpointsDir = checkpointsDir } = options;
  const connection = createTrainerConnection(options.url, apiKey);
  const session = createSession(connection, options.sessionRecord);
  const forwardBackward = createForwardBackward(connection, reduction);

  return {
    url: connection.url,
    reduction,

    createModel: createModels(connection, session, baseModel),

    async forwardBackward(request, signal) {
      await session.resume(signal);
      return forwardBackward(request, signal);
    },

    async optimStep(request, signal) {
      await session.resume(signal);
      const submission = { path: '/api/v1/optim_step', json: optimStepJson(request) };
      const reply = await connection.result(submission, signal);
      return parseReply(optimStepResult, reply, submission.path).metrics ?? {};
    },

    async save(modelId, name, sequence, signal) {
      const json = { model_id: modelId, path: name, seq_id: sequence, type: 'save_weights' };
      return saveOnce(connection, { modelId, kind: 'weights', name }, { path: '/api/v1/save_weights', json }, signal);
    },

    async load(modelId, { path, optimizer }, sequence, signal) {
      const json = { model_id: modelId, path, optimizer, seq_id: sequence, type: 'load_weights' };
      await connection.result({ path: '/api/v1/load_weights', json }, signal);
    },

    remove: (path, signal) => removeCheckpoint(connection, path, signal),

    async saveForSampler(modelId, name, sequence, signal) {
      const address = { modelId, kind: 'sampler_weights', name } as const;
      const json = { model_id: modelId, path: name, seq_id: sequence, type: 'save_weights_for_sampler' };
      await saveOnce(connection, address, { path: '/api/v1/save_weights_for_sampler', json }, signal);
      return loadableWeights(connection, address, { local: checkpointsDir, engine: engineCheckpointsDir }, signal);
    },

    async unload(modelId, signal) {
      const submission = { path: '/api/v1/unload_model', json: { model_id: modelId, type: 'unload_model' } };
      const reply = await connection.post(submission, signal);
      if (reply.status === 404) return;
      if (reply.status !== 200) throw failureOf(reply, submission.path);
    },

    close: () => session.close(),
  };
}

/** Returns the function that creates models in the client's session. */
function createModels(
  connection: TrainerConnection,
  session: TrainerSession,
  baseModel: string,
): Trainer['createModel'] {
  return async ({ loraRank, seed }, signal) => {
    const submit = async () => {
      const json = {
        session_id: await session.id(signal),
        model_seq_id: await session.nextModel(),
        base_model: baseModel,
        lora_config: { rank: loraRank, seed },
      };
      const submission = { path: '/api/v1/create_model', json };
      return { submission, reply: await connection.post(submission, signal) };
    };
    let { submission, reply } = await submit();
    if (reply.status === 404) {
      // The server has restarted and no longer knows the session.
      session.close();
      ({ submission, reply } = await submit());
    }
    if (reply.status !== 200) throw failureOf(reply, submission.path);
    const created = parseReply(createModelResponse, reply, submission.path);
    await connection.settled(created.request_id, submission, signal);
    return created.model_id;
  };
}

type WireFormat = 'protobuf' | 'json';

function createForwardBackward(connection: TrainerConnection, reduction: 'sum' | 'datum-mean') {
  let format: WireFormat | null = null;
  return async (request: ForwardBackward, signal?: AbortSignal): Promise<ForwardBackwardResult> => {
    const wire = wireRequest(request, reduction);
    format ??= await negotiate(connection, signal);
    const reply = await connection.result(submissionOf(wire, format), signal);
    const output = isProtobuf(reply) ? decodeOutput(reply.bytes) : outputFromJson(jsonOf(reply));
    const logprobs = request.data.map((datum, index) => {
      const values = output.outputs[index]?.logprobs;
      if (values?.length !== datum.targets.length || !values.every(Number.isFinite)) {
        const got = values === undefined ? 'none' : `${values.length}, all finite: ${values.every(Number.isFinite)}`;
        throw refused(
          `forward_backward: expected ${datum.targets.length} finite logprobs for data[${index}], got ${got}`,
        );
      }
      return values;
    });
    return { logprobs, metrics: output.metrics };
  };
}

/**
 * Finds out the wire format by an empty JSON body, which has no effect: current servers answer 415, older ones name the
 * missing fields.
 */
async function negotiate(connection: TrainerConnection, signal?: AbortSignal): Promise<WireFormat> {
  const path = '/api/v1/forward_backward';
  const reply = await connection.post({ path, json: {} }, signal);
  // A server that reads no JSON may also fail at it.
  if (isTransient(reply) && reply.status !== 500) throw failureOf(reply, path);
  return reply.status === 400 || reply.status === 422 ? 'json' : 'protobuf';
}

function submissionOf(wire: WireForwardBackward, format: WireFormat) {
  if (format === 'protobuf') return { path: '/api/v1/forward_backward', bytes: encodeRequest(wire) };
  return { path: wire.forwardOnly ? '/api/v1/forward' : '/api/v1/forward_backward', json: requestJson(wire) };
}

function optimStepJson(step: OptimStep) {
  return {
    model_id: step.modelId,
    seq_id: step.sequence,
    adam_params: {
      learning_rate: step.learningRate,
      beta1: step.beta1,
      beta2: step.beta2,
      eps: step.eps,
      weight_decay: step.weightDecay,
      ...(step.gradClipNorm === undefined ? {} : { grad_clip_norm: step.gradClipNorm }),
    },
    type: 'optim_step',
  };
}
