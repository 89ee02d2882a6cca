import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { DataSetOptions } from '../data-set.ts';
import { type DataSetFormatName, dataSetFormats, isDataSetFormat } from '../formats/index.ts';

/** Where a data set is published. */
export type DataSetPlace =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'hub'; readonly id: string; readonly revision: string; readonly path: string };

/** `<format>:<place>[?option=value&…][#<task id>]`. */
export interface DataSetAddress {
  readonly kind: 'data-set';
  readonly format: DataSetFormatName;
  readonly place: DataSetPlace;
  readonly options: DataSetOptions;
  /** One task of it. */
  readonly task: string | null;
}

const text = z.string().min(1, { error: 'expected a text' }).exactOptional();
const optionShape = {
  image: text,
  repositories: text,
  split: text,
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, { error: 'expected 64 hexadecimal digits' })
    .exactOptional(),
};
const options = z.object(optionShape);

/** The address of a data set or of one of its tasks; null when it is another kind of address. */
export function parseDataSetAddress(address: string): DataSetAddress | null {
  const [, format = '', rest = ''] = /^([a-z0-9-]+):(.+)$/s.exec(address) ?? [];
  if (!isDataSetFormat(format)) return null;
  const [named = '', ...fragments] = rest.split('#');
  const [place = '', ...queries] = named.split('?');
  const { own, others } = optionsIn(queries.join('?'), address);
  const query = others.toString();
  const parsed = placeOf(query === '' ? place : `${place}?${query}`);
  if (parsed === null || (parsed.kind !== 'url' && query !== '')) {
    throw new TemperFailure('UnknownTask', `expected ${dataSetForm}, got ${JSON.stringify(address)}`);
  }
  return {
    kind: 'data-set',
    format,
    place: parsed,
    options: own,
    task: fragments.length === 0 ? null : fragments.join('#'),
  };
}

export const dataSetForm = `<format>:<place>[?${Object.keys(optionShape).join('=|')}=…][#<task>] with a format of ${Object.keys(dataSetFormats).join(', ')} and a place /<path>, https://… or hub:<owner>/<name>[@<revision>][/<path>]`;

/** A URL's own query is left to it: only what is ours is taken out. */
function optionsIn(query: string, address: string) {
  const others = new URLSearchParams(query);
  const ours = Object.keys(optionShape).flatMap((name) => {
    const value = others.get(name);
    others.delete(name);
    return value === null ? [] : [[name, value] as const];
  });
  const parsed = options.safeParse(Object.fromEntries(ours));
  if (parsed.success) return { own: parsed.data, others };
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new TemperFailure('UnknownTask', `${address}: ${problems.join('; ')}`);
}

function placeOf(place: string): DataSetPlace | null {
  if (place.startsWith('/')) return { kind: 'path', path: place };
  if (/^https?:\/\//.test(place) && URL.canParse(place)) return { kind: 'url', url: place };
  const [, id, revision = 'main', path = ''] =
    /^hub:([\w.-]+\/[\w.-]+)(?:@([\w.-]+))?(?:\/([\w./ +=-]+))?$/.exec(place) ?? [];
  return id === undefined ? null : { kind: 'hub', id, revision, path };
}
