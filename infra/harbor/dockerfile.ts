import { posix } from 'node:path';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { unsupportedLine } from './dockerfile-instructions.ts';
import { readStages, type Stage } from './dockerfile-stages.ts';
import { isKnown } from './dockerfile-words.ts';

/** The parts of a task's Dockerfile that a sandbox can carry out without building an image. */
export interface Dockerfile {
  readonly base: string;
  /** Null if it names none, or one that only its image can tell. */
  readonly workdir: string | null;
  /** The line that names the workdir by what only its image can tell; null if there is none. */
  readonly unknownWorkdir: string | null;
  /** The target of `COPY workspace`, or null when there is no such line. */
  readonly workspaceTarget: string | null;
  /** The command that its container starts with, and that gets what else is to run as arguments; null if it has none. */
  readonly entrypoint: readonly string[] | null;
  /** The account of its commands; null where it names none, or one that only its image can tell. */
  readonly user: string | null;
  /** The other instructions, which need a build. */
  readonly buildOnly: readonly string[];
}

const withoutEffect = new Set(['LABEL', 'CMD', 'ENTRYPOINT', 'EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK']);

/** The part of a Dockerfile that a stage hands on to those that start from it. */
type Place = Pick<Dockerfile, 'workdir' | 'unknownWorkdir' | 'entrypoint' | 'user'>;

const nowhere: Place = { workdir: null, unknownWorkdir: null, entrypoint: null, user: null };

/** Reads a Dockerfile. Throws TemperFailure MalformedTask when it has no FROM. */
export function readDockerfile(source: string): Dockerfile {
  let base: string | null = null;
  let workspaceTarget: string | null = null;
  const buildOnly: string[] = [];
  const places = new Map<Stage | null, Place>();
  let place = nowhere;
  for (const { keyword, rest, line, stage, expand } of readStages(source)) {
    const copy = keyword === 'COPY' ? /^(?:\.\/)?workspace\/?\s+(\S+)$/.exec(rest) : null;
    const target = copy?.[1] === undefined ? null : placeIn(place.workdir, expand(copy[1]));
    if (keyword === 'FROM') {
      if (base !== null || !/^\S+$/.test(rest)) buildOnly.push(line);
      base ??= stage?.image ?? '';
      place = places.get(stage?.parent ?? null) ?? nowhere;
    } else if (keyword === 'ENTRYPOINT') place = { ...place, entrypoint: commandIn(rest) };
    else if (keyword === 'WORKDIR') place = { ...place, ...workdirAt(place, expand(rest), line) };
    else if (target !== null && workspaceTarget === null) workspaceTarget = target;
    else if (keyword === 'RUN' ? !onlyGit(rest) : !withoutEffect.has(keyword)) buildOnly.push(line);
    if (keyword === 'USER') place = { ...place, user: userIn(expand(rest)) };
    places.set(stage, place);
  }
  if (base === null || base === '') {
    throw new TemperFailure('MalformedTask', 'environment/Dockerfile: expected a line FROM <image>, got none');
  }
  return { base, workspaceTarget, buildOnly, ...place };
}

/** Returns the place that a Dockerfile leaves to its image; null if it is known. */
const placeIn = (workdir: string | null, path: string): string | null =>
  isKnown(path) ? posix.resolve('/', workdir ?? '/', path) : null;

const userIn = (user: string): string | null => (isKnown(user) ? user : null);

function workdirAt(
  { workdir, unknownWorkdir }: Place,
  path: string,
  line: string,
): Pick<Place, 'workdir' | 'unknownWorkdir'> {
  if (!isKnown(path)) return { workdir: null, unknownWorkdir: line };
  if (unknownWorkdir !== null && !path.startsWith('/')) return { workdir: null, unknownWorkdir };
  return { workdir: placeIn(workdir, path), unknownWorkdir: null };
}

/** Returns the workdir of a Dockerfile; null if it names none. Throws UnsupportedTask for one that only its image can tell. */
export function workdirIn({ workdir, unknownWorkdir }: Pick<Dockerfile, 'workdir' | 'unknownWorkdir'>): string | null {
  if (unknownWorkdir === null) return workdir;
  const todo = 'set them by ENV or ARG there, or name the workdir in task.toml: environment.workdir';
  throw unsupportedLine('a WORKDIR whose variables the Dockerfile itself sets', unknownWorkdir, todo);
}

const words = z.array(z.string());

/** Reads a command: a list of words, or a text for the shell. Returns null for an empty list. */
function commandIn(rest: string): readonly string[] | null {
  if (!rest.startsWith('[')) return ['/bin/sh', '-c', rest];
  try {
    const list = words.parse(JSON.parse(rest));
    return list.length === 0 ? null : list;
  } catch {
    // A list that is not JSON is a text for the shell, as for the builder.
    return ['/bin/sh', '-c', rest];
  }
}

/** Whether a RUN only runs git. It needs no build, since temper makes the base commit itself. */
function onlyGit(command: string): boolean {
  // No text matches in two ways, which could take for ever.
  return command.split(/&&|;/).every((part) => /^\s*(?:[A-Z_]+=(?:'[^']*'|"[^"]*"|[^\s'"])*\s+)*git\s/.test(part));
}
