import { TemperFailure } from '../../workflows/contracts/failures.ts';

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
  for (const { keyword, rest, line } of instructions(source)) {
    const copy = keyword === 'COPY' ? /^(?:\.\/)?workspace\/?\s+(\S+)$/.exec(rest) : null;
    const target = copy?.[1];
    if (keyword === 'FROM' && base === null) base = rest.split(/\s+/)[0] ?? '';
    else if (keyword === 'WORKDIR') workdir = absolute(workdir, rest);
    else if (target !== undefined && workspaceTarget === null) workspaceTarget = absolute(workdir, target);
    else if (keyword === 'RUN' ? !onlyGit(rest) : !withoutEffect.has(keyword)) beyond.push(line);
  }
  if (base === null || base === '') {
    throw new TemperFailure('MalformedTask', 'environment/Dockerfile: expected a line FROM <image>, got none');
  }
  return { base, workdir, workspaceTarget, beyond };
}

interface Instruction {
  readonly keyword: string;
  readonly rest: string;
  readonly line: string;
}

function instructions(source: string): readonly Instruction[] {
  const lines = source
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\s*\n\s*/g, ' ')
    .split('\n');
  return lines.flatMap((text) => {
    const line = text.trim();
    const [, keyword = '', rest = ''] = /^(\S+)\s*(.*)$/.exec(line) ?? [];
    return line === '' ? [] : [{ keyword: keyword.toUpperCase(), rest, line }];
  });
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
