/**
 * KL to a reference policy, added to a loss per token: w kl_coef k3, k3 = exp(q - l) - (q - l) - 1, q = the reference's logprob.
 * Never negative, and zero only where both agree. Source: Schulman 2020, "Approximating KL divergence"; GRPO, arXiv 2402.03300, eq. 4.
 */
export interface KlPenalty {
  readonly k3: number;
  readonly loss: number;
  readonly slope: number;
}

export function klPenalty(logprob: number, referenceLogprob: number, weight: number, coefficient: number): KlPenalty {
  const difference = referenceLogprob - logprob;
  const k3 = Math.expm1(difference) - difference;
  return { k3, loss: weight * coefficient * k3, slope: -weight * coefficient * Math.expm1(difference) };
}
