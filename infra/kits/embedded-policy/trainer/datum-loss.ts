import { PolicyError } from '../errors.ts';
import { klPenalty } from '../losses/kl-penalty.ts';
import type { Loss, TokenInput } from '../losses/loss.ts';
import type { DatumOutput, LossConfig, Metrics } from '../trainer-core.ts';
import type { CheckedDatum } from './datums.ts';

export interface DatumLoss extends DatumOutput {
  /** d loss / d logprob of each token */
  readonly slopes: Float32Array;
}

/** Sums over tokens whose weight is not 0. */
export interface LossTally {
  datums: number;
  tokens: number;
  weightedTokens: number;
  loss: number;
  ratio: number;
  ratioMax: number;
  clipped: number;
  samplerKl: number;
  differenceMax: number;
  referenceKl: number;
}

export function createTally(): LossTally {
  return {
    datums: 0,
    tokens: 0,
    weightedTokens: 0,
    loss: 0,
    ratio: 0,
    ratioMax: 0,
    clipped: 0,
    samplerKl: 0,
    differenceMax: 0,
    referenceKl: 0,
  };
}

/** Applies a loss and the KL penalty to every token of a datum, and adds to the tally for the metrics. */
export function applyLoss(
  loss: Loss,
  settings: Required<LossConfig>,
  { datum, logprobs }: { readonly datum: CheckedDatum; readonly logprobs: Float32Array },
  tally: LossTally,
): DatumLoss {
  const elementwiseLoss = new Float32Array(logprobs.length);
  const slopes = new Float32Array(logprobs.length);
  for (const [t, logprob] of logprobs.entries()) {
    const weight = datum.weights[t] ?? 0;
    const samplerLogprob = datum.logprobs?.[t] ?? logprob;
    if (!Number.isFinite(logprob))
      throw nonFinite(loss.name, `datums[${tally.datums}]`, t, { logprob, samplerLogprob });
    if (weight === 0) continue;
    const token = loss.token({ logprob, weight, samplerLogprob, advantage: datum.advantages?.[t] ?? 0 }, settings);
    const reference = datum.referenceLogprobs?.[t] ?? logprob;
    const kl = klPenalty(logprob, reference, weight, settings.kl_coef);
    elementwiseLoss[t] = token.loss + kl.loss;
    slopes[t] = token.slope + kl.slope;
    if (!Number.isFinite(elementwiseLoss[t]) || !Number.isFinite(slopes[t])) {
      throw nonFinite(loss.name, `datums[${tally.datums}]`, t, { logprob, samplerLogprob });
    }
    tally.weightedTokens += 1;
    tally.loss += token.loss + kl.loss;
    tally.clipped += token.clipped ? 1 : 0;
    tally.referenceKl += kl.k3;
    countRatio(tally, logprob - samplerLogprob);
  }
  tally.datums += 1;
  tally.tokens += logprobs.length;
  return { logprobs, elementwiseLoss, slopes };
}

function countRatio(tally: LossTally, difference: number): void {
  const ratio = Math.exp(difference);
  tally.ratio += ratio;
  tally.ratioMax = Math.max(tally.ratioMax, ratio);
  tally.samplerKl += ratio - 1 - difference;
  tally.differenceMax = Math.max(tally.differenceMax, Math.abs(difference));
}

function nonFinite(
  loss: string,
  datum: string,
  t: number,
  { logprob, samplerLogprob }: Pick<TokenInput, 'logprob' | 'samplerLogprob'>,
): PolicyError {
  const got = `logprob ${logprob} now and ${samplerLogprob} from the sampler`;
  const message = `${loss}: expected a finite loss at ${datum} token ${t}, got ${got}; the call had no effect`;
  return new PolicyError('non-finite', message, { field: `${datum}.logprobs[${t}]`, got });
}

export function metricsOf(loss: Loss, settings: Required<LossConfig>, tally: LossTally): Metrics {
  const share = (sum: number): number => (tally.weightedTokens === 0 ? 0 : sum / tally.weightedTokens);
  const common = {
    'loss:sum': tally.loss,
    'loss:mean': share(tally.loss),
    datums: tally.datums,
    tokens: tally.tokens,
    weighted_tokens: tally.weightedTokens,
  };
  if (!loss.needs.includes('logprobs')) return common;
  return {
    ...common,
    'ratio:mean': share(tally.ratio),
    'ratio:max': tally.ratioMax,
    clip_fraction: share(tally.clipped),
    'kl:sampler': share(tally.samplerKl),
    'logprob_difference:max': tally.differenceMax,
    ...(settings.kl_coef > 0 ? { 'kl:reference': share(tally.referenceKl) } : {}),
  };
}
