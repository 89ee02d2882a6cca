/** The number of halvings of an interval, down to the precision of a double. */
const halvings = 60;
/** The relative change at which the continued fraction has converged. */
const converged = 1e-14;
/** The largest number of its terms. It needs about the root of the larger parameter. */
const mostTerms = 100_000;
/** Lanczos's coefficients for g = 7, which give the gamma function to 15 digits. */
const lanczos = [
  676.520368121885, -1259.1392167224, 771.323428777653, -176.615029162141, 12.5073432786869, -0.13857109526572,
  9.98436957801957e-6, 1.50563273514931e-7,
];

/** Returns the x at which the beta distribution with parameters a and b, both above 0, reaches a probability. */
export function betaQuantile(probability: number, a: number, b: number): number {
  let [low, high] = [0, 1];
  for (let i = 0; i < halvings; i += 1) {
    const middle = (low + high) / 2;
    if (betaProbability(middle, a, b) < probability) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The regularised incomplete beta function I_x(a, b): the probability of a value up to x. DLMF 8.17.22. */
function betaProbability(x: number, a: number, b: number): number {
  // The fraction converges fast below the mean; above it the other tail is computed.
  if (x > (a + 1) / (a + b + 2)) return 1 - betaProbability(1 - x, b, a);
  const log = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x);
  return (Math.exp(log) / a) * continuedFraction(x, a, b);
}

/** Evaluates the continued fraction of I_x(a, b) by Lentz's method. */
function continuedFraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / (1 - ((a + b) * x) / (a + 1));
  let value = d;
  for (let m = 1; m <= mostTerms; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    value *= c * d;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    value *= c * d;
    if (Math.abs(c * d - 1) < converged) break;
  }
  return value;
}

function logGamma(x: number): number {
  const series = lanczos.reduce((sum, coefficient, i) => sum + coefficient / (x + 1 + i), 0.99999999999981);
  const t = x + 7.5;
  // The series is that of x + 1, since it holds above 0.5 only.
  return Math.log(2 * Math.PI) / 2 + (x + 0.5) * Math.log(t) - t + Math.log(series) - Math.log(x);
}
