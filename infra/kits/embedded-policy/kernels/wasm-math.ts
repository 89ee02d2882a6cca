import { type Code, type FunctionBuilder, f32, f32x4, i32, i32x4, type Local, v128 } from './wasm-emitter.ts';

// Vector expressions shared by the WASM kernels.

export const zeros = f32x4.const(0);
export const ones = f32x4.const(1);

/** The range of exp: it underflows to a denormal below, and overflows above. */
const expRange = { low: -87.3, high: 88.3 } as const;
/** ln 2 in two parts, the first exact in few bits, so that x - n ln 2 keeps its precision. */
const ln2 = { high: 0.693359375, low: -2.1219444e-4 } as const;
/** Minimax polynomial of (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2, highest degree first (Cephes expf). */
const expPolynomial = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5] as const;
/** 1.5 * 2^23: adding it rounds a small float to an integer, which is then in the low bits. */
const roundingConstant = 12_582_912;

/**
 * Creates exp of four lanes, to about 2 ulp: exp(x) = 2^n exp(r), x = n ln 2 + r; 2^n is added to the exponent bits. The
 * constants are put into locals once, outside the loop that calls it; a call emits its statements and returns the code that
 * reads the result.
 */
export function createExp4(f: FunctionBuilder): (x: Code) => Code {
  const constant = (value: number): Code => f.local('v128', f32x4.const(value)).get;
  const [low, high, log2e] = [constant(expRange.low), constant(expRange.high), constant(Math.LOG2E)];
  const [ln2High, ln2Low, rounding, one] = [
    constant(ln2.high),
    constant(ln2.low),
    constant(roundingConstant),
    constant(1),
  ];
  const polynomial = expPolynomial.map(constant);
  const [n, r, y] = [f.local('v128'), f.local('v128'), f.local('v128')];
  return (x) => {
    r.set(f32x4.min(f32x4.max(x, low), high));
    n.set(f32x4.add(f32x4.mul(r.get, log2e), rounding));
    const whole = f32x4.sub(n.get, rounding);
    r.set(f32x4.sub(f32x4.sub(r.get, f32x4.mul(whole, ln2High)), f32x4.mul(whole, ln2Low)));
    y.set(polynomial.reduce((sum, coefficient) => f32x4.add(f32x4.mul(sum, r.get), coefficient)));
    y.set(f32x4.add(f32x4.add(f32x4.mul(y.get, f32x4.mul(r.get, r.get)), r.get), one));
    y.set(i32x4.add(y.get, i32x4.shl(n.get, i32.const(23))));
    return y.get;
  };
}

/** Returns (l0 + l1) + (l2 + l3). */
export function sumLanes(vector: Local): Code {
  const lane = (index: number): Code => f32x4.lane(vector.get, index);
  return f32.add(f32.add(lane(0), lane(1)), f32.add(lane(2), lane(3)));
}

export function maxLanes(vector: Local): Code {
  const lane = (index: number): Code => f32x4.lane(vector.get, index);
  return f32.max(f32.max(lane(0), lane(1)), f32.max(lane(2), lane(3)));
}

/** Returns a mask with all bits set in the lanes whose index j..j+3 is below `count`. */
export function lanesBelow(j: Code, count: Code): Code {
  return i32x4.lt(i32x4.add(i32x4.splat(j), i32x4.lanes(0, 1, 2, 3)), i32x4.splat(count));
}

export const keep = v128.and;
