import { stat } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { TaskSetAddress } from '../../workflows/contracts/task.ts';
import { findMarked, groupLevels } from '../data-sets/directories/marked-directories.ts';
import { parseSetAddress } from './address.ts';

/** Directories below a set that look like tasks and are not among its tasks. */
export interface LeftOut {
  readonly why: string;
  readonly count: number;
  readonly example: string;
}

/** The file of a task by the format of its set. */
const markers = { harbor: 'task.toml', 'terminal-bench': 'task.yaml' } as const;

/** Finds what a directory of tasks leaves out. Returns nothing for a set of another kind. */
export async function findLeftOut(set: TaskSetAddress): Promise<readonly LeftOut[]> {
  const named = await directoryOf(set);
  if (named === null) return [];
  const { directory, format } = named;
  const other = format === 'harbor' ? 'terminal-bench' : 'harbor';
  const { tasks } = await findMarked(directory, markers[format]);
  const all = (await findMarked(directory, markers[format], Number.POSITIVE_INFINITY)).tasks;
  const others = (await findMarked(directory, markers[other], Number.POSITIVE_INFINITY)).tasks;
  const isKnown = (path: string): boolean => all.some((task) => path === task || path.startsWith(task + sep));
  const taken = new Set(tasks);
  const found = [
    {
      why: `${markers[format]} below more than ${groupLevels} groups: name a directory nearer to it`,
      paths: all.filter((path) => !taken.has(path)),
    },
    {
      why: `${markers[other]}, which ${other}:<directory> reads`,
      paths: others.filter((path) => !isKnown(path)),
    },
  ];
  return found.flatMap(({ why, paths: [first, ...rest] }) =>
    first === undefined ? [] : [{ why, count: rest.length + 1, example: relative(directory, first) }],
  );
}

async function directoryOf(set: TaskSetAddress) {
  const parsed = parseSetAddress(set);
  if (parsed.kind === 'harbor') return { directory: parsed.directory, format: 'harbor' } as const;
  if (parsed.kind !== 'data-set' || parsed.format !== 'terminal-bench' || parsed.location.kind !== 'path') return null;
  const { path } = parsed.location;
  return (await stat(path)).isDirectory() ? ({ directory: path, format: parsed.format } as const) : null;
}
