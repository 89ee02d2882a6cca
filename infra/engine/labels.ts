import { z } from 'zod';
import type { VersionSpan } from '../../workflows/contracts/trace.ts';
import { invalid, unavailable } from './checks.ts';

// The labels under which an engine knows policy versions.
//
// Weights: `<version>@<name>`, so that a repeated publication differs from another run's publication of the same number.
// LoRA adapters: `<model>-v<version>`; their path shows the rest. `default` is the engine's own label of weights that were
// never published.

export const unpublishedLabel = 'default';

/** Spans of sampled tokens with the label of their weights, as engines report them. */
export const labelledSpans = z.array(
  z.object({ version: z.string(), start: z.number().int().min(0), end: z.number().int().min(0) }),
);
export type LabelledSpans = z.infer<typeof labelledSpans>;

export function weightLabel(publication: { readonly version: number; readonly name: string }): string {
  return `${publication.version}@${publication.name}`;
}

/** Returns the version of a weight label; null when the weights were never published. */
export function versionOfLabel(label: string): number | null {
  if (label === unpublishedLabel) return null;
  const digits = /^(\d+)(?:@|$)/.exec(label)?.[1];
  if (digits === undefined) {
    throw invalid(
      `weight version: expected "${unpublishedLabel}" or "<number>@<name>", got "${label}"; publish a policy version to this engine`,
    );
  }
  return Number(digits);
}

/** Returns the version of a weight label; unpublished weights have `baseVersion`, and without one they are refused. */
export function versionOfWeights(label: string, baseVersion: number | null, where: string): number {
  return versionOfLabel(label) ?? requireBaseVersion(baseVersion, where);
}

export function versionSpans(spans: LabelledSpans, baseVersion: number | null, where: string): readonly VersionSpan[] {
  return spans.map(({ version, start, end }) => ({
    version: versionOfWeights(version, baseVersion, where),
    start,
    end,
  }));
}

/**
 * Returns the version of unpublished weights. A restarted engine has its first weights again: without a version they are
 * refused.
 */
export function requireBaseVersion(baseVersion: number | null, where: string): number {
  if (baseVersion !== null) return baseVersion;
  throw unavailable(`${where}: expected a published policy version, got the engine's first weights; publish one to it`);
}

export function adapterName(model: string, version: number): string {
  return `${model}-v${version}`;
}

/** Returns the version that is part of an adapter's name; null for any model that is not an adapter of temper. */
export function versionOfAdapter(model: string, name: string): number | null {
  const digits = name.startsWith(`${model}-v`) ? /^\d+$/.exec(name.slice(model.length + 2))?.[0] : undefined;
  return digits === undefined ? null : Number(digits);
}
