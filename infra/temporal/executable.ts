import { execFile } from 'node:child_process';
import { access, constants, mkdir } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDirectory } from '../process/cache.mjs';
import { withLock } from '../process/file-lock.ts';
import { touch } from '../process/touch.ts';
import { buildGoTool, type GoTool } from './go-tool.ts';
import { downloadTemporal, officialRelease, type ReleaseSource, temporalCliVersion } from './release.ts';

const run = promisify(execFile);
const versionTimeoutMs = 10_000;

/** The oldest version whose dev server has every flag and every call that temper uses. */
const oldestCli = '1.5.0';

const temporalTool: GoTool = {
  name: 'temporal',
  module: fileURLToPath(new URL('./cli', import.meta.url)),
  mainPackage: 'github.com/temporalio/cli/cmd/temporal',
  linkerFlags: `-s -w -X github.com/temporalio/cli/internal/temporalcli.Version=${temporalCliVersion}`,
  minutes: 3,
};

const tctlVersion = '1.18.0';
const tctlTool: GoTool = {
  name: 'tctl',
  module: fileURLToPath(new URL('./tctl', import.meta.url)),
  mainPackage: 'github.com/temporalio/tctl/cmd/tctl',
  linkerFlags: '-s -w',
  minutes: 2,
};

export interface LocateOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Receives a line for each operation that takes time. */
  readonly progress: (line: string) => void;
  /** A mirror to download from instead of the official release. */
  readonly release?: ReleaseSource;
}

export interface Executable {
  readonly path: string;
  readonly source: 'PATH' | 'cache' | 'download' | 'build';
}

/** Finds the `temporal` executable on PATH or in the cache, downloads the official release, or builds it with `go`. */
export async function locateTemporal(options: LocateOptions, signal?: AbortSignal): Promise<Executable> {
  const failures: string[] = [];
  const onPath = await findOnPath('temporal', options.env);
  if (onPath !== undefined) {
    const version = await cliVersion(onPath);
    if (version !== undefined && isAtLeast(version, oldestCli)) return { path: onPath, source: 'PATH' };
    failures.push(`${onPath}: expected version ${oldestCli} or newer, got ${version ?? 'no answer'}`);
  }
  const target = cachedAt('temporal', temporalCliVersion, options.env);
  return await makeOnce(target, options, async () => {
    const attempt = `downloading Temporal CLI ${temporalCliVersion}`;
    options.progress(attempt);
    try {
      await downloadTemporal(options.release ?? officialRelease(options.env), target, signal);
      return 'download';
    } catch (error) {
      signal?.throwIfAborted();
      failures.push(`${attempt}: ${reason(error)}`);
      options.progress(`${attempt} failed: ${reason(error)}`);
    }
    await buildOrExplain({ tool: temporalTool, target, failures }, options, signal);
    return 'build';
  });
}

/** Finds an existing `temporal` executable, without downloading or building one. */
export async function findTemporal(env: LocateOptions['env']): Promise<Executable | undefined> {
  const onPath = await findOnPath('temporal', env);
  const version = onPath === undefined ? undefined : await cliVersion(onPath);
  if (onPath !== undefined && version !== undefined && isAtLeast(version, oldestCli)) {
    return { path: onPath, source: 'PATH' };
  }
  const target = cachedAt('temporal', temporalCliVersion, env);
  if (!(await isExecutable(target))) return undefined;
  await touch(dirname(target));
  return { path: target, source: 'cache' };
}

/** Builds tctl, the older command-line client, which only the tests need. */
export function buildTctl(options: LocateOptions, signal?: AbortSignal): Promise<Executable> {
  return buildTool(tctlTool, tctlVersion, options, signal);
}

/** Finds a version of a tool in the cache, or builds it with `go`. */
export async function buildTool(
  tool: GoTool,
  version: string,
  options: LocateOptions,
  signal?: AbortSignal,
): Promise<Executable> {
  const target = cachedAt(tool.name, version, options.env);
  return await makeOnce(target, options, async () => {
    await buildOrExplain({ tool, target, failures: [] }, options, signal);
    return 'build';
  });
}

/** Finds a version of a tool in the cache. */
export async function findTool(tool: GoTool, version: string, env: LocateOptions['env']): Promise<string | undefined> {
  const target = cachedAt(tool.name, version, env);
  return (await isExecutable(target)) ? target : undefined;
}

/** Whether a version of a tool is in the cache, or there is a `go` to build it with. */
export async function canBuildTool(tool: GoTool, version: string, env: LocateOptions['env']): Promise<boolean> {
  return (await findTool(tool, version, env)) !== undefined || (await findOnPath('go', env)) !== undefined;
}

/** Makes the executable in one process, while the others wait for it. */
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

/** Builds the tool, or throws an error with every failure so far. */
async function buildOrExplain(
  { tool, target, failures }: { readonly tool: GoTool; readonly target: string; readonly failures: readonly string[] },
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
      reasons.push(`building it: ${reason(error)}`);
    }
  }
  const remedy =
    tool.name === 'temporal'
      ? 'Install the Temporal CLI (https://docs.temporal.io/cli) or Go 1.21 or newer, or set TEMPORAL_ADDRESS to a running server.'
      : 'Install Go 1.21 or newer.';
  throw new Error(
    `could not find or build ${tool.name}; tried:\n${reasons.map((line) => `  - ${line}`).join('\n')}\n${remedy}`,
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

/** The version that `temporal --version` prints; undefined if the file is not a Temporal CLI or can't run here. */
async function cliVersion(executable: string): Promise<string | undefined> {
  const answer = await run(executable, ['--version'], { timeout: versionTimeoutMs }).catch(() => undefined);
  return /^temporal version (\d+\.\d+\.\d+)/.exec(answer?.stdout ?? '')?.[1];
}

/** Whether a version is at least `minimum` by its dotted numbers; a suffix, as in `1.9.0-rc.1`, does not count. */
export function isAtLeast(version: string, minimum: string): boolean {
  const numbers = version.split('.').map((part) => Number.parseInt(part, 10));
  const wanted = minimum.split('.').map((part) => Number.parseInt(part, 10));
  for (const [index, want] of wanted.entries()) {
    const have = numbers[index] ?? 0;
    if (have !== want) return have > want;
  }
  return true;
}
