import { parse, stringify } from 'smol-toml';
import { isRecord } from '../../http/client.ts';

/** A file's text after the diff, with what concerns tests as it was at the base commit. Null: no such file. */
export type Merge = (base: string | null, now: string | null) => string | null;

/** Files of which only a part says how tests are run, by name. */
export const sectionedFiles: Readonly<Record<string, Merge>> = {
  'pyproject.toml': mergeObjects(readToml, stringify, [
    ['tool', 'pytest'],
    ['tool', 'tox'],
    ['tool', 'coverage'],
  ]),
  'package.json': mergeObjects(readJson, (value) => `${JSON.stringify(value, null, 2)}\n`, [
    ...['jest', 'mocha', 'vitest', 'ava', 'tap', 'nyc', 'c8'].map((name) => [name] as const),
    ['scripts', /^(?:pre|post)?test(?::|$)/],
  ]),
  'setup.cfg': mergeSections(/^(?:tool:pytest|pytest|tox(?::.*)?|testenv(?::.*)?|coverage:.*)$/),
};

type Table = Readonly<Record<string, unknown>>;
/** A member, or all members of a table that match. */
type Place = readonly [string] | readonly [string, string | RegExp];

/** An edit that leaves these places alone stays as it is, to the byte; one that nobody can read is undone as a whole. */
function mergeObjects(
  read: (text: string) => Table | null,
  write: (value: Table) => string,
  places: readonly Place[],
): Merge {
  return (base, now) => {
    const before = base === null ? {} : read(base);
    // What the task's own tools can't read either says nothing about tests.
    if (before === null) return now;
    const after = now === null ? {} : read(now);
    if (after === null) return base;
    const kept = pick(before, places);
    if (JSON.stringify(kept) === JSON.stringify(pick(after, places))) return now;
    const merged = join(omit(after, places), kept);
    return now === null && Object.keys(merged).length === 0 ? null : write(merged);
  };
}

const isAt = (place: Place, table: string, name?: string): boolean => {
  if (place[0] !== table) return false;
  if (place.length === 1) return true;
  return name !== undefined && (typeof place[1] === 'string' ? place[1] === name : place[1].test(name));
};

/** The entries one and two levels deep at these places, and the rest. */
function divide(value: Table, places: readonly Place[], atPlaces: boolean): Table {
  const entries = Object.entries(value).flatMap(([table, content]): [string, unknown][] => {
    if (places.some((place) => isAt(place, table))) return atPlaces ? [[table, content]] : [];
    if (!isRecord(content) || !places.some(([name]) => name === table)) return atPlaces ? [] : [[table, content]];
    const inside = Object.entries(content).filter(
      ([name]) => places.some((place) => isAt(place, table, name)) === atPlaces,
    );
    return inside.length === 0 && atPlaces ? [] : [[table, Object.fromEntries(inside)]];
  });
  return Object.fromEntries(entries.sort(atPlaces ? ([one], [other]) => (one < other ? -1 : 1) : () => 0));
}
const pick = (value: Table, places: readonly Place[]): Table => divide(value, places, true);
const omit = (value: Table, places: readonly Place[]): Table => divide(value, places, false);

function join(rest: Table, kept: Table): Table {
  const tables = Object.entries(kept).map(([table, content]) => {
    const there = rest[table];
    return [table, isRecord(there) && isRecord(content) ? { ...there, ...content } : content] as const;
  });
  return { ...rest, ...Object.fromEntries(tables) };
}

function readToml(text: string): Table | null {
  try {
    return parse(text);
  } catch {
    return null;
  }
}

function readJson(text: string): Table | null {
  try {
    // npm and jest read a file that begins with a byte order mark.
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/** INI: a section reaches from its head to the next. Heads that stand further in count too: readers differ about them. */
function mergeSections(named: RegExp): Merge {
  const parts = (text: string | null): readonly string[] => (text ?? '').split(/^(?=[ \t]*\[)/m);
  const concerns = (part: string): boolean => named.test(/^[ \t]*\[([^\]]*)\]/.exec(part)?.[1]?.trim() ?? '');
  return (base, now) => {
    const kept = parts(base).filter(concerns);
    const changed = parts(now).filter(concerns);
    if (kept.join('\n').trim() === changed.join('\n').trim()) return now;
    const rest = parts(now).filter((part) => !concerns(part));
    const merged = [...rest, ...kept].map((part) => (part === '' || part.endsWith('\n') ? part : `${part}\n`)).join('');
    return merged === '' && now === null ? null : merged;
  };
}
