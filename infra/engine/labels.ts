import { z } from 'zod';
import type { VersionSpan } from '../../workflows/contracts/trace.ts';
import { invalid, unavailable } from './checks.ts';

// The labels under which an engine knows policy versions.
//
// Weights: `<version>@<name>`, where the name is that of `policyName`: it tells whose policy they are. LoRA adapters:
// `<model>-<end of the run's key>-v<version>`. `default` is the engine's own label of weights that were never published.

const unpublishedLabel = 'default';

/** Spans of sampled tokens with the label of their weights, as engines report them. */
export const labelledSpans = z.array(
  z.object({ version: z.string(), start: z.number().int().min(0), end: z.number().int().min(0) }),
);
export type LabelledSpans = z.infer<typeof labelledSpans>;

export function weightLabel(publication: { readonly version: number; readonly name: string }): string {
  return `${publication.version}@${publication.name}`;
}

/** The weights that an engine is asked for. */
export interface WeightsWanted {
  /** The version of weights that were never published; null: they are refused. */
  readonly baseVersion: number | null;
  /** The policy whose versions count; absent: the one in service. */
  readonly policy?: string | undefined;
}

/** Returns the version of a weight label; null when the weights were never published, or are those of another policy. */
export function versionOfLabel(label: string, policy?: string): number | null {
  if (label === unpublishedLabel) return null;
  const [, digits, name] = /^(\d+)(?:@(.*)|$)/.exec(label) ?? [];
  if (digits === undefined) {
    throw invalid(
      `weight version: expected "${unpublishedLabel}" or "<number>@<name>", got "${label}"; publish a policy version to this engine`,
    );
  }
  const isOthers = policy !== undefined && name !== undefined && !name.startsWith(`${policy}-v`);
  return isOthers ? null : Number(digits);
}

/**
 * Returns the version of a weight label; unpublished weights have `baseVersion`, and without one they are refused. So are the
 * weights of another policy.
 */
export function versionOfWeights(label: string, { baseVersion, policy }: WeightsWanted, where: string): number {
  const version = versionOfLabel(label, policy);
  if (version !== null) return version;
  if (label === unpublishedLabel) return requireBaseVersion(baseVersion, where);
  throw unavailable(`${where}: expected the policy of run …${policy}, got the weights ${label} of another run`);
}

export function versionSpans(spans: LabelledSpans, wanted: WeightsWanted, where: string): readonly VersionSpan[] {
  return spans.map(({ version, start, end }) => ({
    version: versionOfWeights(version, wanted, where),
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

/** Returns what the names of a policy's adapters begin with; without a policy, it is the model's name alone. */
export const adapterPrefix = (model: string, policy: string | undefined): string =>
  policy === undefined ? model : `${model}-${policy}`;

export function adapterName(prefix: string, version: number): string {
  return `${prefix}-v${version}`;
}

/** Returns the version that is part of an adapter's name; null for any model that is not an adapter of this policy. */
export function versionOfAdapter(prefix: string, name: string): number | null {
  const digits = name.startsWith(`${prefix}-v`) ? /^\d+$/.exec(name.slice(prefix.length + 2))?.[0] : undefined;
  return digits === undefined ? null : Number(digits);
}

/** Returns the policy whose adapter of this model has the name; null for any other model, and for adapters without a policy. */
export function policyOfAdapter(model: string, name: string): string | null {
  if (!name.startsWith(`${model}-`)) return null;
  return /^([0-9a-f]{12})-v\d+$/.exec(name.slice(model.length + 1))?.[1] ?? null;
}
