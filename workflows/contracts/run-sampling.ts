import type { Sampling } from './trace.ts';

/** A field of a run's sampling with which the run is refused. */
interface Refusal {
  readonly field: keyof Sampling;
  readonly error: string;
}

/**
 * Returns the fields of a run's sampling whose tokens could not be trained on as they were sampled: a trainer computes the
 * logprobs of the whole distribution at temperature 1.
 */
export function refusedSampling(
  { temperature, topP, topK, overridable }: Sampling,
  allowTruncatedSampling: boolean,
): readonly Refusal[] {
  const truncated =
    "in a run unless allowTruncatedSampling (--allow-truncated-sampling) is set, because a trainer's logprobs are those of all tokens";
  const refusals: readonly (Refusal & { readonly isMet: boolean })[] = [
    {
      field: 'temperature',
      error: "expected 1 in a run, because a trainer's logprobs are those of temperature 1",
      isMet: temperature === 1,
    },
    {
      field: 'overridable',
      error: "expected false in a run, because tokens sampled at an agent's own temperature cannot be trained on",
      isMet: overridable !== true,
    },
    { field: 'topP', error: `expected 1 ${truncated}`, isMet: topP === 1 || allowTruncatedSampling },
    { field: 'topK', error: `expected -1 ${truncated}`, isMet: topK < 1 || allowTruncatedSampling },
  ];
  return refusals.filter(({ isMet }) => !isMet);
}
