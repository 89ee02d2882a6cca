import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { DataSetLocation, DataSetOptions } from './data-set.ts';
import { type DataSetFormatName, dataSetFormats, isDataSetFormat } from './formats/index.ts';

/** A parsed address: `<format>:<location>[?option=value&…][#<task id>]`. */
export interface DataSetAddress {
  readonly kind: 'data-set';
  readonly format: DataSetFormatName;
  readonly location: DataSetLocation;
  readonly options: DataSetOptions;
  /** The id of one task, or null when the address names the whole data set. */
  readonly task: string | null;
}

const text = z.string().min(1, { error: 'expected a text that is not empty' }).exactOptional();
const optionShape = {
  image: text,
  repositories: text,
  split: text,
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, { error: 'expected 64 hexadecimal digits' })
    .exactOptional(),
  shell: z.literal('fresh', { error: 'expected fresh' }).exactOptional(),
  grading: z.enum(['fresh', 'same', 'snapshot'], { error: 'expected fresh, same or snapshot' }).exactOptional(),
  user: z.literal('root', { error: 'expected root' }).exactOptional(),
  processes: z.literal('keep', { error: 'expected keep' }).exactOptional(),
};
const optionsSchema = z.object(optionShape);

/**
 * Parses the address of a data set or of one of its tasks. Returns null when the address does not start with the name of a
 * format. Throws TemperFailure UnknownTask when the rest of it is invalid.
 */
export function parseDataSetAddress(address: string): DataSetAddress | null {
  const [, format = '', rest = ''] = /^([a-z0-9-]+):(.+)$/s.exec(address) ?? [];
  if (!isDataSetFormat(format)) return null;
  const [beforeFragment = '', ...fragments] = rest.split('#');
  const [path = '', ...queries] = beforeFragment.split('?');
  const { options, otherParameters } = takeOptions(queries.join('?'), address);
  const query = otherParameters.toString();
  const location = parseLocation(query === '' ? path : `${path}?${query}`);
  if (location === null || (location.kind !== 'url' && query !== '')) {
    throw new TemperFailure('UnknownTask', `expected ${dataSetForm}, got ${JSON.stringify(address)}`);
  }
  return { kind: 'data-set', format, location, options, task: fragments.length === 0 ? null : fragments.join('#') };
}

/** The published sets that have a name of their own. */
const namedSets: Readonly<Record<string, DataSetLocation>> = {
  'terminal-bench@2.0': { kind: 'hub', id: 'harborframework/terminal-bench-2.0', revision: 'main', path: '' },
  'terminal-bench@2.1': { kind: 'hub', id: 'harborframework/terminal-bench-2.1', revision: 'main', path: '' },
};

/** Whether the location of a data set is not one on this host. */
export const isRemote = (location: string): boolean =>
  /^(?:https?:\/\/|hub:|git\+)/.test(location) || Object.hasOwn(namedSets, location);

/** The syntax of addresses, for error messages. */
export const dataSetForm = `<format>:<location>[?${Object.keys(optionShape).join('=|')}=…][#<task>] with a format of ${Object.keys(dataSetFormats).join(', ')} and a location /<path>, https://…, hub:<owner>/<name>[@<revision>][/<path>], git+https://….git[@<revision>][/<path>] or one of ${Object.keys(namedSets).join(', ')}`;

/** Separates temper's options from the other parameters of a query, which belong to the URL. */
function takeOptions(query: string, address: string) {
  const otherParameters = new URLSearchParams(query);
  const given = Object.keys(optionShape).flatMap((name) => {
    const value = otherParameters.get(name);
    otherParameters.delete(name);
    return value === null ? [] : [[name, value] as const];
  });
  const parsed = optionsSchema.safeParse(Object.fromEntries(given));
  if (parsed.success) return { options: parsed.data, otherParameters };
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new TemperFailure('UnknownTask', `${address}: ${problems.join('; ')}`);
}

/** A revision ends at a slash, so one of its own is written as `%2F`. */
function parseLocation(location: string): DataSetLocation | null {
  if (location.startsWith('/')) return { kind: 'path', path: location };
  if (/^https?:\/\//.test(location) && URL.canParse(location)) return { kind: 'url', url: location };
  const [, id, ofHub = 'main', onHub = ''] =
    /^hub:([\w.-]+\/[\w.-]+)(?:@((?:[\w.-]|%2F)+))?(?:\/([\w./ +=-]+))?$/.exec(location) ?? [];
  if (id !== undefined) return { kind: 'hub', id, revision: decodeURIComponent(ofHub), path: onHub };
  const [, url, revision = 'HEAD', path = ''] =
    /^git\+(https?:\/\/[^@\s]+?\.git)(?:@(\w(?:[\w.-]|%2F)*))?(?:\/([^\0]+))?$/.exec(location) ?? [];
  if (url === undefined) return Object.hasOwn(namedSets, location) ? (namedSets[location] ?? null) : null;
  return URL.canParse(url) ? { kind: 'git', url, revision: decodeURIComponent(revision), path } : null;
}
