import { z } from 'zod';
import { float32Bytes, int32Bytes, int64Bytes, readBfloat16, readFloat32, readInt32, readInt64 } from './arrays.ts';
import {
  type BatchedTensorMessage,
  dtypes,
  forwardBackwardOutputCodec,
  forwardBackwardRequestCodec,
  type TensorMessage,
} from './messages.ts';

/** A forward_backward request, independent of its format: protobuf since SDK 0.25, JSON before. */
export interface WireForwardBackward {
  readonly modelId: string;
  readonly sequence: number | null;
  readonly data: readonly WireDatum[];
  readonly loss: string;
  readonly lossConfig: Readonly<Record<string, number>>;
  readonly forwardOnly: boolean;
}

export interface WireDatum {
  readonly tokens: readonly number[];
  readonly inputs: Readonly<Record<string, WireTensor>>;
}

export interface WireTensor {
  readonly dtype: 'float32' | 'int64';
  readonly data: readonly number[];
}

export interface WireOutput {
  readonly type: string;
  /** One entry per datum: its arrays by field name. */
  readonly outputs: readonly Readonly<Record<string, readonly number[]>>[];
  readonly metrics: Readonly<Record<string, number>>;
}

export function encodeRequest(request: WireForwardBackward): Buffer {
  return forwardBackwardRequestCodec.encode({
    model_id: request.modelId,
    seq_id: request.sequence ?? 0,
    loss_fn: request.loss,
    loss_fn_config: request.lossConfig,
    forward_only: request.forwardOnly,
    data: request.data.map((datum) => ({
      model_input: [{ encoded_text: { tokens: int32Bytes(datum.tokens) } }],
      loss_fn_inputs: mapValues(datum.inputs, tensorMessage),
    })),
  });
}

/** Parses a request. Throws an Error that says what is wrong with the bytes. */
export function decodeRequest(bytes: Uint8Array): WireForwardBackward {
  const message = forwardBackwardRequestCodec.decode(bytes);
  return {
    modelId: message.model_id,
    sequence: message.seq_id === 0 ? null : message.seq_id,
    loss: message.loss_fn,
    lossConfig: { ...message.loss_fn_config, ...mapValues(message.loss_fn_config_v2 ?? {}, settingOf) },
    forwardOnly: message.forward_only,
    data: message.data.map(({ model_input, loss_fn_inputs }) => ({
      tokens: model_input.flatMap((chunk) => {
        if (chunk.encoded_text === undefined) throw new Error('model_input: expected encoded_text chunks only');
        return readInt32(chunk.encoded_text.tokens);
      }),
      inputs: mapValues(loss_fn_inputs, tensorOf),
    })),
  };
}

/** Returns the request as a JSON body. */
export function requestJson(request: WireForwardBackward) {
  const { modelId, sequence, data, loss, lossConfig } = request;
  const input = {
    data: data.map(({ tokens, inputs }) => ({
      model_input: { chunks: [{ type: 'encoded_text', tokens }] },
      loss_fn_inputs: mapValues(inputs, ({ dtype, data: values }) => ({ data: values, dtype, shape: [values.length] })),
    })),
    loss_fn: loss,
    ...(Object.keys(lossConfig).length === 0 ? {} : { loss_fn_config: lossConfig }),
  };
  const key = request.forwardOnly ? 'forward_input' : 'forward_backward_input';
  return { model_id: modelId, seq_id: sequence, [key]: input };
}

export function encodeOutput(output: WireOutput): Buffer {
  const names = [...new Set(output.outputs.flatMap((fields) => Object.keys(fields)))];
  const fields = Object.fromEntries(
    names.map((name) => [name, batched(output.outputs.map((datum) => datum[name] ?? []))]),
  );
  return forwardBackwardOutputCodec.encode({
    loss_fn_output_type: output.type,
    loss_fn_outputs: [{ type_tag: '', fields, num_datums: output.outputs.length }],
    metrics: output.metrics,
  });
}

export function decodeOutput(bytes: Uint8Array): WireOutput {
  const message = forwardBackwardOutputCodec.decode(bytes);
  const outputs = message.loss_fn_outputs.flatMap((record) => {
    const fields = Object.entries(record.fields).map(([name, tensor]) => [name, unbatched(tensor)] as const);
    const count = record.num_datums || (fields[0]?.[1].length ?? 0);
    return Array.from({ length: count }, (_, datum) =>
      Object.fromEntries(fields.map(([name, values]) => [name, values[datum] ?? []])),
    );
  });
  return { type: message.loss_fn_output_type, outputs, metrics: message.metrics };
}

const outputJson = z.object({
  loss_fn_output_type: z.string().default(''),
  loss_fn_outputs: z.array(z.record(z.string(), z.object({ data: z.array(z.number()) }))),
  metrics: z.record(z.string(), z.number().nullable()).default({}),
});

export function outputFromJson(json: unknown): WireOutput {
  const { loss_fn_output_type, loss_fn_outputs, metrics } = outputJson.parse(json);
  return {
    type: loss_fn_output_type,
    outputs: loss_fn_outputs.map((fields) => mapValues(fields, ({ data }) => data)),
    metrics: mapValues(metrics, (value) => value ?? Number.NaN),
  };
}

function tensorMessage({ dtype, data }: WireTensor): TensorMessage {
  const dense = dtype === 'float32' ? float32Bytes(data) : int64Bytes(data);
  return { dense, dtype: dtypes[dtype], shape: [data.length] };
}

function tensorOf({ dense, dtype }: TensorMessage): WireTensor {
  if (dense === undefined) throw new Error('loss_fn_inputs: expected dense tensors only');
  if (dtype === dtypes.float32) return { dtype: 'float32', data: readFloat32(dense) };
  if (dtype === dtypes.int64) return { dtype: 'int64', data: readInt64(dense) };
  throw new Error(`loss_fn_inputs: expected dtype float32 (1) or int64 (2), got ${dtype}`);
}

function settingOf({ number, text }: { readonly number?: number; readonly text?: string }, name: string): number {
  if (text !== undefined) throw new Error(`loss_fn_config.${name}: expected a number, got "${text}"`);
  return number ?? 0;
}

function batched(rows: readonly (readonly number[])[]): BatchedTensorMessage {
  const offsets = [0];
  for (const row of rows) offsets.push((offsets.at(-1) ?? 0) + row.length * 4);
  return { data: float32Bytes(rows.flat()), offsets: int64Bytes(offsets), dtype: dtypes.float32, trailing_shape: [] };
}

function unbatched({ data, offsets, dtype }: BatchedTensorMessage): readonly (readonly number[])[] {
  const [read, size] = readerOf(dtype);
  const values = read(data);
  const bounds = readInt64(offsets).map((offset) => offset / size);
  return bounds.slice(1).map((end, index) => values.slice(bounds[index], end));
}

function readerOf(dtype: number): readonly [(bytes: Uint8Array) => number[], number] {
  if (dtype === dtypes.float32) return [readFloat32, 4];
  if (dtype === dtypes.int64) return [readInt64, 8];
  if (dtype === dtypes.int32) return [readInt32, 4];
  if (dtype === dtypes.bfloat16) return [readBfloat16, 2];
  throw new Error(`result tensor: expected dtype 1 to 4, got ${dtype}`);
}

function mapValues<V, W>(record: Readonly<Record<string, V>>, change: (value: V, key: string) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
