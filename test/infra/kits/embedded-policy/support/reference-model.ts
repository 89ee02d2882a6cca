import { rmsEpsilon } from '../../../../../infra/kits/embedded-policy/kernels/kernels.ts';
import type { ModelConfig } from '../../../../../infra/kits/embedded-policy/model/config.ts';
import type { ParameterLayout } from '../../../../../infra/kits/embedded-policy/model/parameters.ts';

/**
 * An independent float64 forward pass, written from the formulas and sharing no code with
 * infra/kits/embedded-policy/network: slow, plain, differentiable by finite differences.
 */

type Matrix = readonly (readonly number[])[];

/** Returns log p(target | inputs up to t) for every t, from a flat weight vector in the layout's order. */
export function referenceLogprobs(
  config: ModelConfig,
  layout: ParameterLayout,
  weights: ArrayLike<number>,
  { inputs, targets }: { readonly inputs: readonly number[]; readonly targets: readonly number[] },
): number[] {
  const tensor = (name: string): Matrix => {
    const found = layout.all.find((parameter) => parameter.name === name);
    if (found === undefined) throw new Error(`expected a parameter ${name}`);
    const columns = found.shape.at(-1) ?? 1;
    const values = Array.from({ length: found.count }, (_, i) => Number(weights[found.offset + i]));
    return Array.from({ length: found.count / columns }, (_, r) => values.slice(r * columns, (r + 1) * columns));
  };
  const [E, P] = [tensor('embedding.weight'), tensor('positions.weight')];
  let x: Matrix = inputs.map((token, t) => add(row(E, token), row(P, t)));
  for (let l = 0; l < config.layers; l++) {
    const h = x.map((v) => norm(v, row(tensor(`layers.${l}.attention_norm.weight`), 0)));
    const attended = attention(times(h, tensor(`layers.${l}.attention.qkv.weight`)), config.heads);
    x = plus(x, times(attended, tensor(`layers.${l}.attention.output.weight`)));
    const g = x.map((v) => norm(v, row(tensor(`layers.${l}.mlp_norm.weight`), 0)));
    const up = times(g, tensor(`layers.${l}.mlp.up.weight`)).map((v) => v.map((u) => u / (1 + Math.exp(-u))));
    x = plus(x, times(up, tensor(`layers.${l}.mlp.down.weight`)));
  }
  return x.map((v, t) => {
    const normed = norm(v, row(tensor('final_norm.weight'), 0));
    const logits = E.map((e) => dot(e, normed));
    const top = Math.max(...logits);
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
    return (logits[targets[t] ?? 0] ?? Number.NaN) - top - Math.log(total);
  });
}

function attention(qkv: Matrix, heads: number): Matrix {
  const d = (qkv[0]?.length ?? 0) / 3;
  const w = d / heads;
  return qkv.map((current, t) =>
    Array.from({ length: heads }, (_, h) => {
      const query = current.slice(h * w, (h + 1) * w);
      const past = qkv.slice(0, t + 1);
      const scores = past.map((r) => Math.exp(dot(query, r.slice(d + h * w, d + (h + 1) * w)) / Math.sqrt(w)));
      const total = scores.reduce((a, b) => a + b, 0);
      return Array.from({ length: w }, (_, i) =>
        past.reduce((sum, r, j) => sum + ((scores[j] ?? 0) / total) * (r[2 * d + h * w + i] ?? 0), 0),
      );
    }).flat(),
  );
}

const row = (m: Matrix, index: number): readonly number[] => m[index] ?? [];
const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, v, i) => sum + v * (b[i] ?? 0), 0);
const add = (a: readonly number[], b: readonly number[]): number[] => a.map((v, i) => v + (b[i] ?? 0));
const plus = (a: Matrix, b: Matrix): Matrix => a.map((v, r) => add(v, row(b, r)));
const times = (a: Matrix, b: Matrix): Matrix =>
  a.map((v) => Array.from({ length: row(b, 0).length }, (_, c) => v.reduce((s, u, k) => s + u * (b[k]?.[c] ?? 0), 0)));
const norm = (v: readonly number[], gain: readonly number[]): number[] => {
  const rms = Math.sqrt(dot(v, v) / v.length + rmsEpsilon);
  return v.map((u, i) => (u / rms) * (gain[i] ?? 0));
};
