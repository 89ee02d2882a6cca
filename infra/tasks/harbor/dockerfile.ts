import { TemperFailure } from '../../../workflows/contracts/failures.ts';

/** What a task's Dockerfile says, as far as a sandbox can do it without building an image. */
export interface Dockerfile {
  readonly base: string;
  readonly workdir: string | null;
  /** Where `COPY workspace` puts the files; null when there is no such line. */
  readonly workspaceTarget: string | null;
  /** Instructions beyond that, which only a build can do. */
  readonly beyond: readonly string[];
}

const withoutEffect = new Set(['LABEL', 'CMD', 'ENTRYPOINT', 'EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK']);

/** Throws TemperFailure MalformedTask when there is no FROM. */
export function readDockerfile(source: string): Dockerfile {
  let base: string | null = null;
  let workdir: string | null = null;
  let workspaceTarget: string | null = null;
  const beyond: string[] = [];
  const stages = new Map<string, string | null>();
  let stage = '';
  for (const { keyword, rest, line } of instructions(source)) {
    const copy = keyword === 'COPY' ? /^(?:\.\/)?workspace\/?\s+(\S+)$/.exec(rest) : null;
    const target = copy?.[1];
    if (keyword === 'FROM') {
      if (base === null && /^\S+$/.test(rest)) base = rest;
      else beyond.push(line);
      base ??= rest;
      stages.set(stage, workdir);
      const [image = '', , name = ''] = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
      workdir = stages.get(image.toLowerCase()) ?? null;
      stage = name.toLowerCase();
    } else if (keyword === 'WORKDIR') workdir = absolute(workdir, rest);
    else if (target !== undefined && workspaceTarget === null) workspaceTarget = absolute(workdir, target);
    else if (keyword === 'RUN' ? !onlyGit(rest) : !withoutEffect.has(keyword)) beyond.push(line);
  }
  if (base === null || base === '') {
    throw new TemperFailure('MalformedTask', 'environment/Dockerfile: expected a line FROM <image>, got none');
  }
  return { base, workdir, workspaceTarget, beyond };
}

export interface Instruction {
  readonly keyword: string;
  readonly rest: string;
  readonly line: string;
  /** Number of its last line, from 1. */
  readonly endLine: number;
}

const isBlank = (line: string): boolean => /^\s*(#|$)/.test(line);
const continued = /\\[ \t]*$/;

/** As the builder reads it: comments and empty lines between the parts of an instruction are no part of it. */
export function instructions(source: string): readonly Instruction[] {
  const found: Instruction[] = [];
  let begun: string | null = null;
  const lines = source.split(/\r?\n/);
  for (const [index, text] of lines.entries()) {
    if (isBlank(text) && index < lines.length - 1) continue;
    const joined: string = (begun ?? '') + (isBlank(text) ? '' : text);
    begun = continued.test(joined) && index < lines.length - 1 ? joined.replace(continued, '') : null;
    const line = joined.trim();
    if (begun !== null || line === '') continue;
    const [, keyword = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
    found.push({ keyword: keyword.toUpperCase(), rest, line, endLine: index + 1 });
  }
  return found;
}

/** The base commit is ours to make, so a RUN that only runs git asks for nothing more. */
function onlyGit(command: string): boolean {
  return command.split(/&&|;/).every((part) => /^\s*(?:[A-Z_]+=(?:'[^']*'|"[^"]*"|\S*)\s+)*git\s/.test(part));
}

function absolute(base: string | null, path: string): string {
  const trimmed = path.replaceAll(/^["']|["']$/g, '').replace(/(?<=.)\/+$/, '');
  if (trimmed.startsWith('/')) return trimmed;
  const below = trimmed === '.' ? '' : `/${trimmed.replace(/^\.\//, '')}`;
  return `${base ?? ''}${below}` || '/';
}
