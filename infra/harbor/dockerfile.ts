import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** The parts of a task's Dockerfile that a sandbox can carry out without building an image. */
export interface Dockerfile {
  readonly base: string;
  readonly workdir: string | null;
  /** The target of `COPY workspace`, or null when there is no such line. */
  readonly workspaceTarget: string | null;
  /** The command that its container starts with, and that gets what else is to run as arguments; null if it has none. */
  readonly entrypoint: readonly string[] | null;
  /** The other instructions, which need a build. */
  readonly buildOnly: readonly string[];
}

const withoutEffect = new Set(['LABEL', 'CMD', 'ENTRYPOINT', 'EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK']);

/** Reads a Dockerfile. Throws TemperFailure MalformedTask when it has no FROM. */
export function readDockerfile(source: string): Dockerfile {
  let base: string | null = null;
  let workdir: string | null = null;
  let entrypoint: Dockerfile['entrypoint'] = null;
  let workspaceTarget: string | null = null;
  const buildOnly: string[] = [];
  const stages = new Map<string, Pick<Dockerfile, 'workdir' | 'entrypoint'>>();
  let stage = '';
  for (const { keyword, rest, line } of instructions(source)) {
    const copy = keyword === 'COPY' ? /^(?:\.\/)?workspace\/?\s+(\S+)$/.exec(rest) : null;
    const target = copy?.[1];
    if (keyword === 'FROM') {
      if (base === null && /^\S+$/.test(rest)) base = rest;
      else buildOnly.push(line);
      base ??= rest;
      stages.set(stage, { workdir, entrypoint });
      const [image = '', , name = ''] = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
      ({ workdir, entrypoint } = stages.get(image.toLowerCase()) ?? { workdir: null, entrypoint: null });
      stage = name.toLowerCase();
    } else if (keyword === 'ENTRYPOINT') entrypoint = commandIn(rest);
    else if (keyword === 'WORKDIR') workdir = absolute(workdir, rest);
    else if (target !== undefined && workspaceTarget === null) workspaceTarget = absolute(workdir, target);
    else if (keyword === 'RUN' ? !onlyGit(rest) : !withoutEffect.has(keyword)) buildOnly.push(line);
  }
  if (base === null || base === '') {
    throw new TemperFailure('MalformedTask', 'environment/Dockerfile: expected a line FROM <image>, got none');
  }
  return { base, workdir, workspaceTarget, entrypoint, buildOnly };
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

export interface Instruction {
  readonly keyword: string;
  readonly rest: string;
  readonly line: string;
  /** The number of its last line, counted from 1. */
  readonly endLine: number;
}

const isBlank = (line: string): boolean => /^\s*(#|$)/.test(line);
const continued = /\\[ \t]*$/;

/** Splits a Dockerfile into instructions as the builder does, without comments and empty lines inside an instruction. */
export function instructions(source: string): readonly Instruction[] {
  const found: Instruction[] = [];
  let begun: string[] = [];
  const lines = source.split(/\r?\n/);
  for (const [index, text] of lines.entries()) {
    if (isBlank(text) && index < lines.length - 1) continue;
    // Each line is looked at alone and they are joined once, which takes linear time.
    if (continued.test(text) && index < lines.length - 1) {
      begun.push(text.replace(continued, ''));
      continue;
    }
    const line = [...begun, isBlank(text) ? '' : text].join('').trim();
    begun = [];
    if (line === '') continue;
    const [, keyword = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
    found.push({ keyword: keyword.toUpperCase(), rest, line, endLine: index + 1 });
  }
  return found;
}

/** Whether a RUN only runs git. It needs no build, since temper makes the base commit itself. */
function onlyGit(command: string): boolean {
  // No text matches in two ways, which could take for ever.
  return command.split(/&&|;/).every((part) => /^\s*(?:[A-Z_]+=(?:'[^']*'|"[^"]*"|[^\s'"])*\s+)*git\s/.test(part));
}

function absolute(base: string | null, path: string): string {
  const trimmed = path.replaceAll(/^["']|["']$/g, '').replace(/(?<=.)\/+$/, '');
  if (trimmed.startsWith('/')) return trimmed;
  const below = trimmed === '.' ? '' : `/${trimmed.replace(/^\.\//, '')}`;
  return `${base ?? ''}${below}` || '/';
}
