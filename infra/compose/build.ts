import type { Service } from './schema.ts';
import { insideOf, type Reading, requireOnly } from './values.ts';

/** The settings of a build that are written into its Dockerfile. */
export interface BuildSettings {
  /** The values of the arguments that the Dockerfile declares (`ARG`). */
  readonly args: Readonly<Record<string, string>>;
  /** The name or the number of the stage that is the image; null for the last one. */
  readonly target: string | null;
}

/** A directory of the task's folder that an image is built from. */
export interface ComposedBuild extends BuildSettings {
  /** The path in the task's folder; empty for the folder itself. */
  readonly context: string;
  /** The path in the context. */
  readonly dockerfile: string;
}

export const defaultDockerfile = 'Dockerfile';
export const noSettings: BuildSettings = { args: {}, target: null };

/** Keys that only say how an image is stored, or what a builder may reuse. */
const withoutEffect = [
  'cache_from',
  'cache_to',
  'labels',
  'no_cache',
  'platforms',
  'provenance',
  'pull',
  'sbom',
  'tags',
];
/** The arguments that are the proxies of the network of a build, which is temper's. */
const proxyArgument = /^(?:http|https|ftp|no|all)_proxy$/i;

/** Reads the `build` of a service. */
export function readBuild(written: NonNullable<Service['build']>, { fill, reject }: Reading): ComposedBuild {
  const given = typeof written === 'string' ? { context: written } : written;
  const { context = '.', dockerfile = defaultDockerfile, args = {}, target, ...others } = given;
  requireOnly(others, 'build', ['context', 'dockerfile', 'args', 'target', ...withoutEffect], reject);
  const pairs = Array.isArray(args)
    ? args.map((line) => /^([^=]*)(?:=(.*))?$/s.exec(line)?.slice(1) ?? [line])
    : Object.entries(args);
  const values = pairs.flatMap(([name = '', value]): readonly (readonly [string, string])[] => {
    const field = `build.args.${name}`;
    if (!/^[a-z_]\w*$/i.test(name)) throw reject('build.args', 'arguments with their values', name);
    if (proxyArgument.test(name)) return [];
    if (value == null) throw reject(field, 'a value: no variable of the host gets into an image', 'none');
    const filled = fill(String(value), field);
    if (/[^\P{C}\t]|[\u2028\u2029]/u.test(filled)) throw reject(field, 'one line of plain text', 'something else');
    return [[name, filled]];
  });
  return {
    context: insideOf(fill(context, 'build.context'), 'build.context', reject),
    dockerfile: insideOf(fill(dockerfile, 'build.dockerfile'), 'build.dockerfile', reject),
    args: Object.fromEntries(values),
    target: target === undefined ? null : fill(target, 'build.target') || null,
  };
}
