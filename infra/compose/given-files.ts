import { posix } from 'node:path';
import { hiddenLiteral, hostValueIn, literalValue, writeHostValue } from './host-value.ts';
import type { Mount } from './mounts.ts';
import type { Service } from './schema.ts';
import { type GivenFile, insideOf, type Reading, requireOnly } from './values.ts';

/** A file whose text the compose file has, or the host. */
export interface TextFile {
  /** The absolute path in the container. */
  readonly target: string;
  /** The text, as a value of an environment: one of the host is a variable there. */
  readonly value: string;
}

/** The files of `secrets` and `configs`, by where their text is. */
export interface GivenFiles {
  readonly mounts: readonly Mount[];
  readonly texts: readonly TextFile[];
}

/** The two kinds of such files, with the directory of those that name no target. */
const directories = { secrets: '/run/secrets', configs: '/' } as const;
export type GivenKind = keyof typeof directories;
const kinds = ['secrets', 'configs'] as const;

/**
 * Reads the `secrets` and `configs` of a service. Their files are the task's own, their texts those of the compose file, and a
 * variable of the host is left to the operator. Where the files become part of an image, such a variable is rejected.
 */
export function readGivenFiles(
  service: Pick<Service, GivenKind>,
  reading: Reading,
  { inImage }: { readonly inImage: boolean },
): GivenFiles {
  const all = kinds.flatMap((kind) =>
    service[kind].map((used) => {
      const file = readUsed(kind, used, reading);
      if (!inImage || 'source' in file || !isOfHost(file)) return file;
      throw reading.reject(
        kind,
        'no variable of the host, which would get into an image (use environment)',
        file.target,
      );
    }),
  );
  return {
    mounts: all.flatMap((one) => ('source' in one ? [one] : [])),
    texts: all.flatMap((one) => ('value' in one ? [one] : [])),
  };
}

/** Whether the host decides the text of a file. */
export const isOfHost = ({ value }: TextFile): boolean => hostValueIn(value) !== null && hiddenLiteral(value) === null;

/** Returns the text of a file that is the same on each host. */
export const textIn = ({ value }: TextFile): string => hiddenLiteral(value) ?? value;

function readUsed(kind: GivenKind, used: Service[GivenKind][number], reading: Reading): Mount | TextFile {
  const { fill, reject, given, rejectFile } = reading;
  const { source, target: path = '', ...others } = typeof used === 'string' ? { source: used } : used;
  // Owners and modes are left out: every account of the container may read the file.
  requireOnly(others, kind, ['source', 'target', 'uid', 'gid', 'mode'], reject);
  const name = fill(source, kind);
  const found = Object.hasOwn(given[kind], name) ? given[kind][name] : undefined;
  if (found === undefined) throw reject(kind, `one of the ${kind} of the file`, name);
  const target = posix.resolve(directories[kind], fill(path, kind) || name);
  if (!/^\/[^\0\n$:]+$/.test(target)) throw reject(kind, 'the path of a file as its target', target);
  return readSource(found, { field: `${kind}.${name}`, target, reading: { ...reading, reject: rejectFile } });
}

interface Placed {
  /** The name of the table, for messages. */
  readonly field: string;
  readonly target: string;
  readonly reading: Reading;
}

function readSource(given: GivenFile | null, { field, target, reading }: Placed): Mount | TextFile {
  const { fill, reject, textOf } = reading;
  const { file, content, environment, ...others } = given ?? {};
  requireOnly(others, field, ['file', 'content', 'environment', 'name', 'labels'], reject);
  const [one, more] = Object.entries({ file, content, environment }).filter(([, value]) => value !== undefined);
  if (one === undefined || more !== undefined) {
    throw reject(field, 'one of file, content and environment', more === undefined ? 'none' : 'several');
  }
  if (content !== undefined) return { target, value: literalValue(fill(content, `${field}.content`)) };
  if (environment !== undefined) {
    const variable = fill(environment, `${field}.environment`);
    if (!/^[a-z_]\w*$/i.test(variable)) throw reject(`${field}.environment`, 'the name of a variable', variable);
    return { target, value: writeHostValue({ name: variable, fallback: undefined }) };
  }
  const source = insideOf(fill(file ?? '', `${field}.file`), `${field}.file`, reject);
  if (textOf(source) === null) {
    throw reject(`${field}.file`, "a file of the task's own folder", `./${source}, which is missing`);
  }
  return { source, target, readOnly: true };
}
