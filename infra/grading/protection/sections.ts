import { parse, stringify } from 'smol-toml';
import { isRecord } from '../../is-record.ts';

/** Merges a file: its text after the diff, with the parts about tests from the base commit. Null stands for no file. */
export type Merge = (base: string | null, now: string | null) => string | null;

/** The files, by name, of which only a part says how tests are run. */
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

/** Levels of a file of objects that is merged. */
const mostLevels = 20;

type Table = Readonly<Record<string, unknown>>;
/** The path of a member, or of all matching members of a table. */
type KeyPath = readonly [string] | readonly [string, string | RegExp];

/**
 * Merges files of objects. An edit that changes nothing at these paths is kept to the byte; one that cannot be parsed, compared or
 * written, because it is nested too deeply, is undone as a whole.
 */
function mergeObjects(
  read: (text: string) => Table | null,
  write: (value: Table) => string,
  paths: readonly KeyPath[],
): Merge {
  return (base, now) => {
    const before = base === null ? {} : read(base);
    // The task's own tools cannot parse this base either, so it says nothing about tests.
    if (before === null) return now;
    const after = now === null ? {} : read(now);
    if (after === null) return base;
    try {
      const kept = pick(before, paths);
      if (JSON.stringify(kept) === JSON.stringify(pick(after, paths))) return now;
      const merged = join(omit(after, paths), kept);
      requireShallow(merged, mostLevels);
      return now === null && Object.keys(merged).length === 0 ? null : write(merged);
    } catch {
      return base;
    }
  };
}

const isAt = (path: KeyPath, table: string, name?: string): boolean => {
  if (path[0] !== table) return false;
  if (path.length === 1) return true;
  return name !== undefined && (typeof path[1] === 'string' ? path[1] === name : path[1].test(name));
};

/** Returns the entries at these paths, one or two levels deep, or all others. */
function divide(value: Table, paths: readonly KeyPath[], atPaths: boolean): Table {
  const entries = Object.entries(value).flatMap(([table, content]): [string, unknown][] => {
    if (paths.some((path) => isAt(path, table))) return atPaths ? [[table, content]] : [];
    if (!isRecord(content) || !paths.some(([name]) => name === table)) return atPaths ? [] : [[table, content]];
    const inside = Object.entries(content).filter(
      ([name]) => paths.some((path) => isAt(path, table, name)) === atPaths,
    );
    return inside.length === 0 && atPaths ? [] : [[table, Object.fromEntries(inside)]];
  });
  return Object.fromEntries(entries.sort(atPaths ? ([one], [other]) => (one < other ? -1 : 1) : () => 0));
}
const pick = (value: Table, paths: readonly KeyPath[]): Table => divide(value, paths, true);
const omit = (value: Table, paths: readonly KeyPath[]): Table => divide(value, paths, false);

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

/** Throws for a value that is nested so deeply that its text, with its indentation or headings, might be many times as long. */
function requireShallow(value: unknown, levels: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (levels === 0) throw new RangeError(`expected at most ${mostLevels} levels, got more`);
  for (const inner of Object.values(value)) requireShallow(inner, levels - 1);
}

/** Merges INI files. A section ends at the next heading. Indented headings count too, since parsers differ about them. */
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
