import { float32Bytes, int32Bytes, readFloat32, readInt32 } from './arrays.ts';
import { sampleResponseCodec, stopReasons } from './messages.ts';

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

export function decodeSample(bytes: Uint8Array): WireSample {
  const { sequences, prompt_logprobs } = sampleResponseCodec.decode(bytes);
  const prompt = prompt_logprobs === undefined ? [] : readFloat32(prompt_logprobs);
  return {
    sequences: sequences.map(({ stop_reason, tokens, logprobs }) => ({
      stopReason: stop_reason === stopReasons.stop ? 'stop' : 'length',
      tokens: readInt32(tokens),
      logprobs: logprobs === undefined ? [] : readFloat32(logprobs),
    })),
    ...(prompt.length === 0 ? {} : { promptLogprobs: prompt.map((value) => (Number.isNaN(value) ? null : value)) }),
  };
}
