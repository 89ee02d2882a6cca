/**
 * Unbiased estimate of pass@k, the probability that at least one of k attempts at a task passes, from n attempts of which c
 * passed: 1 − C(n − c, k) / C(n, k), as the product 1 − Π (1 − k / i) over i = n − c + 1 … n, which neither overflows nor
 * loses digits. Chen et al. 2021, arXiv:2107.03374, §2.1. Returns null if there are fewer than k attempts, or k is below
 * 1, because no unbiased estimate exists then.
 */
export function passAtK(attempts: number, passed: number, k: number): number | null {
  if (k < 1 || k > attempts) return null;
  if (attempts - passed < k) return 1;
  let allFail = 1;
  for (let i = attempts - passed + 1; i <= attempts; i += 1) allFail *= 1 - k / i;
  return 1 - allFail;
}
