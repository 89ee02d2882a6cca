/** The degrees of freedom from which on the expansion is exact to nine digits, and the sum would be long. */
const expandedFrom = 400;
/** The number of halvings of an interval, down to the precision of a double. */
const halvings = 100;

/**
 * The half-width factor of a 95 % interval: t with P(|T| ≤ t) = 0.95 for Student's T with that many degrees of freedom.
 * The distribution for a whole number of degrees: Abramowitz & Stegun 26.7.3 and 26.7.4; the expansion around the normal
 * quantile: 26.7.5.
 */
export function tFactor(degrees: number): number {
  if (degrees >= expandedFrom) return expanded(degrees);
  let [low, high] = [0, 20];
  for (let i = 0; i < halvings; i += 1) {
    const middle = (low + high) / 2;
    if (within(middle, degrees) < 0.95) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** z with P(|Z| ≤ z) = 0.95 for a standard normal Z. */
export const zFactor = 1.959963984540054;

function expanded(degrees: number): number {
  const z = zFactor;
  const first = (z ** 3 + z) / 4;
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
  return z + first / degrees + second / degrees ** 2;
}

/** P(|T| ≤ t). */
function within(t: number, degrees: number): number {
  const angle = Math.atan(t / Math.sqrt(degrees));
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const odd = degrees % 2 === 1;
  let term = odd ? cosine : 1;
  let sum = 0;
  for (let i = odd ? 1 : 0; i <= degrees - 2; i += 2) {
    sum += term;
    term *= ((i + 1) / (i + 2)) * cosine * cosine;
  }
  return odd ? (2 / Math.PI) * (angle + sine * sum) : sine * sum;
}
