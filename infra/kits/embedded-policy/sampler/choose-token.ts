import type { Random } from '../model/random.ts';

export interface TokenChoice {
  /** The sampling temperature; 0 chooses the likeliest token. */
  readonly temperature: number;
  readonly topP: number;
  /** 0 switches it off. */
  readonly topK: number;
}

/**
 * Draws one token. Top-k keeps the k likeliest; top-p then keeps the smallest set of those that has a share topP of their
 * probability. Ties are resolved to the smaller id, so that equal random numbers give equal tokens.
 */
export function chooseToken(probabilities: Float32Array, choice: TokenChoice, random: Random): number {
  if (choice.temperature === 0) return likeliest(probabilities);
  const point = random.next();
  if (choice.topP === 1 && choice.topK === 0) return walk(probabilities, point);
  const kept = truncate(probabilities, choice);
  const mass = kept.reduce((sum, token) => sum + (probabilities[token] as number), 0);
  return kept[
    walk(
      Float32Array.from(kept, (token) => probabilities[token] as number),
      point * mass,
    )
  ] as number;
}

function likeliest(probabilities: Float32Array): number {
  let best = 0;
  for (let i = 1; i < probabilities.length; i++) {
    if ((probabilities[i] as number) > (probabilities[best] as number)) best = i;
  }
  return best;
}

/** Returns the index where the running sum passes the point, or the last possible index if rounding leaves it unreached. */
function walk(probabilities: Float32Array, point: number): number {
  let sum = 0;
  let last = 0;
  for (let i = 0; i < probabilities.length; i++) {
    const probability = probabilities[i] as number;
    if (probability === 0) continue;
    sum += probability;
    last = i;
    if (point < sum) break;
  }
  return last;
}

function truncate(probabilities: Float32Array, { topP, topK }: TokenChoice): number[] {
  const of = (token: number): number => probabilities[token] as number;
  const sorted = Array.from(probabilities.keys()).sort((a, b) => of(b) - of(a) || a - b);
  const top = topK === 0 ? sorted : sorted.slice(0, topK);
  const wanted = topP * top.reduce((sum, token) => sum + of(token), 0);
  let sum = 0;
  const end = top.findIndex((token) => {
    sum += of(token);
    return sum >= wanted;
  });
  return end === -1 ? top : top.slice(0, end + 1);
}
