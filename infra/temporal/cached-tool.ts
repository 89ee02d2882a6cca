import { access, constants, mkdir } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { cacheDirectory } from '../process/cache.mjs';
import { withLock } from '../process/file-lock.ts';
import { buildGoTool, type GoTool } from './go-tool.ts';

export interface LocateOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Receives a line for each operation that takes time. */
  readonly progress: (line: string) => void;
}

/** A program, and the place where it was found or made. */
export interface Executable {
  readonly path: string;
  readonly source: 'PATH' | 'cache' | 'download' | 'build';
}

/** Makes the executable in one process, while the others wait for it. */
export async function makeOnce(
  target: string,
  options: LocateOptions,
  make: () => Promise<'download' | 'build'>,
): Promise<Executable> {
  if (await isExecutable(target)) return { path: target, source: 'cache' };
  await mkdir(dirname(target), { recursive: true });
  const onWait = ({ pid }: { readonly pid: number | null }): void =>
    options.progress(
      `waiting for ${pid === null ? 'another process' : `process ${pid}`}, which is preparing ${target}`,
    );
  return await withLock(
    `${target}.lock`,
    async () => {
      if (await isExecutable(target)) return { path: target, source: 'cache' as const };
      return { path: target, source: await make() };
    },
    { onWait },
  );
}

/** A build, with what else was tried and what a user can do if it fails, too. */
interface Build {
  readonly tool: GoTool;
  readonly target: string;
  /** The earlier tries that failed, one sentence each. */
  readonly failures: readonly string[];
  readonly remedy: string;
}

/** Builds the tool. Throws an error with every failure so far. */
export async function buildOrExplain(
  { tool, target, failures, remedy }: Build,
  options: LocateOptions,
  signal?: AbortSignal,
): Promise<void> {
  const reasons = [...failures];
  if ((await findOnPath('go', options.env)) === undefined) {
    reasons.push('building it: `go` is not on PATH');
  } else {
    try {
      return await buildGoTool(tool, target, options, signal);
    } catch (error) {
      signal?.throwIfAborted();
      reasons.push(`building it: ${reasonOf(error)}`);
    }
  }
  throw new Error(
    `could not find or build ${tool.name}; tried:\n${reasons.map((line) => `  - ${line}`).join('\n')}\n${remedy}`,
  );
}

/** Returns the path of a tool in the cache, which has a directory for each version and kind of machine. */
export function cachedAt(name: string, version: string, env: LocateOptions['env']): string {
  return join(cacheDirectory(env), name, `${version}-${process.platform}-${process.arch}`, name);
}

export async function findOnPath(name: string, env: LocateOptions['env']): Promise<string | undefined> {
  for (const directory of (env.PATH ?? '').split(delimiter)) {
    const candidate = join(directory, name);
    if (directory !== '' && (await isExecutable(candidate))) return candidate;
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Returns the message of an error with that of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
