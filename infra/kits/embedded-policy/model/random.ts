/**
 * Random numbers that are the same on every machine: xoshiro128** (Blackman and Vigna 2018, arXiv 1805.01407), seeded by
 * splitmix32.
 */
export interface Random {
  /** Returns a uniform number in [0, 1) of 32 bits. */
  next(): number;
  /** Returns a number of the standard normal distribution (Box and Muller 1958). */
  normal(): number;
}

export function createRandom(seed: number): Random {
  // A seed may have more than 32 bits: both halves are mixed in.
  let mixed = ((seed >>> 0) ^ Math.imul(Math.floor(seed / 2 ** 32) >>> 0, 0x85ebca6b)) >>> 0;
  const split = (): number => {
    mixed = (mixed + 0x9e3779b9) >>> 0;
    let z = mixed;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  let [a, b, c, d] = [split(), split(), split(), split()];
  const next = (): number => {
    const scrambled = Math.imul(b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return result / 2 ** 32;
  };
  return {
    next,
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}
