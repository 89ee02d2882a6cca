import protobuf from 'protobufjs';
import { float32Bytes, int32Bytes } from './arrays.ts';

/**
 * The media type of the Tinker API's protobuf messages (package `tinker_public`), which the SDK uses since 0.25. Their bytes
 * are little-endian arrays: tokens int32, logprobs float32, tensors by their `dtype`.
 */
export const protobufType = 'application/x-protobuf';

export const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;
export const stopReasons = { stop: 0, length: 1 } as const;

export interface TensorMessage {
  readonly dense?: Uint8Array;
  readonly sparse_csr?: unknown;
  readonly dtype: number;
  readonly shape: readonly number[];
}

export interface ForwardBackwardRequestMessage {
  readonly model_id: string;
  /** 0 when the request has no sequence id. */
  readonly seq_id: number;
  readonly data: readonly {
    readonly model_input: readonly { readonly encoded_text?: { readonly tokens: Uint8Array } }[];
    readonly loss_fn_inputs: Readonly<Record<string, TensorMessage>>;
  }[];
  readonly loss_fn: string;
  readonly loss_fn_config: Readonly<Record<string, number>>;
  readonly forward_only: boolean;
  /** The same settings in a form that has texts as well. SDKs of today send their numbers in both. */
  readonly loss_fn_config_v2?: Readonly<Record<string, { readonly number?: number; readonly text?: string }>>;
}

export interface BatchedTensorMessage {
  /** The arrays of all datums, concatenated. */
  readonly data: Uint8Array;
  /** Byte offsets as int64, one more than there are datums. */
  readonly offsets: Uint8Array;
  readonly dtype: number;
  readonly trailing_shape: readonly number[];
}

export interface ForwardBackwardOutputMessage {
  readonly loss_fn_output_type: string;
  readonly loss_fn_outputs: readonly {
    readonly type_tag: string;
    readonly fields: Readonly<Record<string, BatchedTensorMessage>>;
    readonly num_datums: number;
  }[];
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SampleResponseMessage {
  readonly sequences: readonly {
    readonly stop_reason: number;
    readonly tokens: Uint8Array;
    readonly logprobs?: Uint8Array;
  }[];
  /** NaN for tokens without a logprob, such as the first. */
  readonly prompt_logprobs?: Uint8Array;
}

// Optional fields are declared as plain ones: on this wire an empty array and a missing one mean the same.
const field = (id: number, type: string) => ({ id, type });
const repeated = (id: number, type: string) => ({ id, type, rule: 'repeated' });
const map = (id: number, keyType: string, type: string) => ({ id, type, keyType });

const root = protobuf.Root.fromJSON({
  nested: {
    EncodedTextChunk: { fields: { tokens: field(1, 'bytes') } },
    ImageChunk: {
      fields: { data: field(1, 'bytes'), format: field(2, 'string'), expected_tokens: field(3, 'int32') },
    },
    DmelChunk: { fields: { dmel: field(1, 'bytes') } },
    Chunk: {
      oneofs: { chunk: { oneof: ['encoded_text', 'image', 'dmel'] } },
      fields: {
        encoded_text: field(1, 'EncodedTextChunk'),
        image: field(2, 'ImageChunk'),
        dmel: field(3, 'DmelChunk'),
      },
    },
    SparseCsr: {
      fields: { values: field(1, 'bytes'), crow_indices: field(2, 'bytes'), col_indices: field(3, 'bytes') },
    },
    Tensor: {
      oneofs: { encoding: { oneof: ['dense', 'sparse_csr'] } },
      fields: {
        dense: field(1, 'bytes'),
        sparse_csr: field(2, 'SparseCsr'),
        dtype: field(3, 'int32'),
        shape: repeated(4, 'int64'),
      },
    },
    Datum: { fields: { model_input: repeated(1, 'Chunk'), loss_fn_inputs: map(2, 'string', 'Tensor') } },
    LossConfigValue: {
      oneofs: { value: { oneof: ['number', 'text'] } },
      fields: { number: field(1, 'double'), text: field(2, 'string') },
    },
    ForwardBackwardRequest: {
      fields: {
        model_id: field(1, 'string'),
        seq_id: field(2, 'int32'),
        data: repeated(3, 'Datum'),
        loss_fn: field(4, 'string'),
        loss_fn_config: map(5, 'string', 'double'),
        forward_only: field(6, 'bool'),
        loss_fn_config_v2: map(7, 'string', 'LossConfigValue'),
      },
    },
    BatchedTensor: {
      fields: {
        data: field(1, 'bytes'),
        offsets: field(2, 'bytes'),
        dtype: field(3, 'int32'),
        trailing_shape: repeated(4, 'int64'),
      },
    },
    ArrayRecord: {
      fields: {
        type_tag: field(1, 'string'),
        fields: map(2, 'string', 'BatchedTensor'),
        num_datums: field(3, 'int64'),
      },
    },
    ForwardBackwardOutput: {
      fields: {
        loss_fn_output_type: field(1, 'string'),
        loss_fn_outputs: repeated(2, 'ArrayRecord'),
        metrics: map(3, 'string', 'double'),
      },
    },
    SampledSequence: {
      fields: { stop_reason: field(1, 'int32'), tokens: field(2, 'bytes'), logprobs: field(3, 'bytes') },
    },
    SampleResponse: { fields: { sequences: repeated(1, 'SampledSequence'), prompt_logprobs: field(2, 'bytes') } },
  },
});

interface Codec<Message> {
  encode(message: Message): Buffer;
  /** Throws when the bytes are not such a message. */
  decode(bytes: Uint8Array): Message;
}

export const forwardBackwardRequestCodec = codec<ForwardBackwardRequestMessage>('ForwardBackwardRequest');
export const forwardBackwardOutputCodec = codec<ForwardBackwardOutputMessage>('ForwardBackwardOutput');
const sampleResponseCodec = codec<SampleResponseMessage>('SampleResponse');

function codec<Message extends object>(name: string): Codec<Message> {
  const type = root.lookupType(name);
  return {
    encode: (message) => Buffer.from(type.encode(type.fromObject(message)).finish()),
    decode: (bytes) => {
      const message = type.toObject(type.decode(bytes), { longs: Number, defaults: true, arrays: true, objects: true });
      return message as Message;
    },
  };
}

export interface WireSample {
  readonly sequences: readonly {
    readonly stopReason: 'stop' | 'length';
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
  }[];
  readonly promptLogprobs?: readonly (number | null)[];
}

export function encodeSample(sample: WireSample): Buffer {
  const { sequences, promptLogprobs } = sample;
  const prompt = promptLogprobs?.map((value) => value ?? Number.NaN);
  return sampleResponseCodec.encode({
    sequences: sequences.map(({ stopReason, tokens, logprobs }) => ({
      stop_reason: stopReasons[stopReason],
      tokens: int32Bytes(tokens),
      logprobs: float32Bytes(logprobs),
    })),
    ...(prompt === undefined ? {} : { prompt_logprobs: float32Bytes(prompt) }),
  });
}
