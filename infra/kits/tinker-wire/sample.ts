import { float32Bytes, int32Bytes } from './arrays.ts';
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
