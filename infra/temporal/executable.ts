import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { touch } from '../process/touch.ts';
import {
  buildOrExplain,
  cachedAt,
  type Executable,
  findOnPath,
  isExecutable,
  type LocateOptions,
  makeOnce,
  reasonOf,
} from './cached-tool.ts';
import type { GoTool } from './go-tool.ts';
import { downloadSources, downloadTemporal, officialRelease, type Release, temporalCliVersion } from './release.ts';

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

const remedy =
  'Install the Temporal CLI (https://docs.temporal.io/cli) or Go 1.21 or newer, or set TEMPORAL_ADDRESS to a running server.';

export interface LocateTemporal extends LocateOptions {
  /** Another release than the official one. */
  readonly release?: Release;
}

/** Finds the `temporal` executable on PATH or in the cache, downloads it, or builds it with `go`. */
export async function locateTemporal(options: LocateTemporal, signal?: AbortSignal): Promise<Executable> {
  const failures: string[] = [];
  const onPath = await findOnPath('temporal', options.env);
  if (onPath !== undefined) {
    const version = await cliVersion(onPath);
    if (version !== undefined && isAtLeast(version, oldestCli)) return { path: onPath, source: 'PATH' };
    failures.push(`${onPath}: expected version ${oldestCli} or newer, got ${version ?? 'no answer'}`);
  }
  const target = cachedAt('temporal', temporalCliVersion, options.env);
  return await makeOnce(target, options, async () => {
    const sources = downloadSources(options.release ?? officialRelease);
    if (sources.length === 0) failures.push(`no release has an executable for ${process.platform}-${process.arch}`);
    for (const source of sources) {
      const attempt = `downloading Temporal CLI ${temporalCliVersion} from ${source.name}`;
      options.progress(attempt);
      try {
        await downloadTemporal(source, target, options, signal);
        return 'download';
      } catch (error) {
        signal?.throwIfAborted();
        failures.push(`${attempt}: ${reasonOf(error)}`);
        options.progress(`${attempt} failed: ${reasonOf(error)}`);
      }
    }
    await buildOrExplain({ tool: temporalTool, target, failures, remedy }, options, signal);
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

/** The version that `temporal --version` prints; undefined if the file is not a Temporal CLI or cannot run here. */
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
