import { access, constants, mkdir } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDirectory } from '../process/cache.mjs';
import { withLock } from '../process/file-lock.ts';
import { buildGoTool, type GoTool } from './go-tool.ts';
import { downloadTemporal, officialRelease, type ReleaseSource, TEMPORAL_CLI_VERSION } from './release.ts';
import { cliVersion, isAtLeast } from './version.ts';

/** The oldest whose dev server has every flag that we pass and every call that we make. */
const OLDEST_CLI = '1.5.0';

const temporalTool: GoTool = {
  name: 'temporal',
  module: fileURLToPath(new URL('./cli', import.meta.url)),
  mainPackage: 'github.com/temporalio/cli/cmd/temporal',
  linkerFlags: `-s -w -X github.com/temporalio/cli/internal/temporalcli.Version=${TEMPORAL_CLI_VERSION}`,
  minutes: 3,
};

const TCTL_VERSION = '1.18.0';
const tctlTool: GoTool = {
  name: 'tctl',
  module: fileURLToPath(new URL('./tctl', import.meta.url)),
  mainPackage: 'github.com/temporalio/tctl/cmd/tctl',
  linkerFlags: '-s -w',
  minutes: 2,
};

export interface LocateOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told what takes time; not called when nothing does. */
  readonly progress: (line: string) => void;
  /** Another place than the official one, for a mirror. */
  readonly release?: ReleaseSource;
}

export interface Executable {
  readonly path: string;
  readonly source: 'PATH' | 'cache' | 'download' | 'build';
}

/** Finds the `temporal` executable: on PATH, in our cache, by the official download, or built with `go`. */
export async function locateTemporal(options: LocateOptions, signal?: AbortSignal): Promise<Executable> {
  const refused: string[] = [];
  const onPath = await findOnPath('temporal', options.env);
  if (onPath !== undefined) {
    const version = await cliVersion(onPath);
    if (version !== undefined && isAtLeast(version, OLDEST_CLI)) return { path: onPath, source: 'PATH' };
    refused.push(`${onPath}: expected version ${OLDEST_CLI} or newer, got ${version ?? 'no answer'}`);
  }
  const target = cachedAt('temporal', TEMPORAL_CLI_VERSION, options.env);
  return await makeOnce(target, options, async () => {
    const attempt = `downloading Temporal CLI ${TEMPORAL_CLI_VERSION}`;
    options.progress(attempt);
    try {
      await downloadTemporal(options.release ?? officialRelease(options.env), target, signal);
      return 'download';
    } catch (error) {
      signal?.throwIfAborted();
      refused.push(`${attempt}: ${reason(error)}`);
      options.progress(`${attempt} failed: ${reason(error)}`);
    }
    await buildOrExplain(temporalTool, target, options, refused, signal);
    return 'build';
  });
}

/** The `temporal` executable that is there already, without fetching or making one; undefined when there is none. */
export async function findTemporal(env: LocateOptions['env']): Promise<Executable | undefined> {
  const onPath = await findOnPath('temporal', env);
  const version = onPath === undefined ? undefined : await cliVersion(onPath);
  if (onPath !== undefined && version !== undefined && isAtLeast(version, OLDEST_CLI)) {
    return { path: onPath, source: 'PATH' };
  }
  const target = cachedAt('temporal', TEMPORAL_CLI_VERSION, env);
  return (await isExecutable(target)) ? { path: target, source: 'cache' } : undefined;
}

/** The older command-line client, which only the tests need. */
export async function buildTctl(options: LocateOptions, signal?: AbortSignal): Promise<Executable> {
  const target = cachedAt('tctl', TCTL_VERSION, options.env);
  return await makeOnce(target, options, async () => {
    await buildOrExplain(tctlTool, target, options, [], signal);
    return 'build';
  });
}

/** One process makes it, the others wait for it. */
async function makeOnce(
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

async function buildOrExplain(
  tool: GoTool,
  target: string,
  options: LocateOptions,
  refused: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const reasons = [...refused];
  if ((await findOnPath('go', options.env)) === undefined) {
    reasons.push('building it: no go on PATH');
  } else {
    try {
      return await buildGoTool(tool, target, options, signal);
    } catch (error) {
      signal?.throwIfAborted();
      reasons.push(`building it: ${reason(error)}`);
    }
  }
  const remedy =
    tool.name === 'temporal'
      ? 'Install the Temporal CLI (https://docs.temporal.io/cli) or Go 1.21 or newer, or set TEMPORAL_ADDRESS to a running server.'
      : 'Install Go 1.21 or newer.';
  throw new Error(
    `expected to find or make ${tool.name}; tried:\n${reasons.map((line) => `  - ${line}`).join('\n')}\n${remedy}`,
  );
}

function cachedAt(name: string, version: string, env: LocateOptions['env']): string {
  return join(cacheDirectory(env), name, `${version}-${process.platform}-${process.arch}`, name);
}

async function findOnPath(name: string, env: LocateOptions['env']): Promise<string | undefined> {
  for (const directory of (env.PATH ?? '').split(delimiter)) {
    const candidate = join(directory, name);
    if (directory !== '' && (await isExecutable(candidate))) return candidate;
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
