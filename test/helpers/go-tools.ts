import {
  buildOrExplain,
  cachedAt,
  type Executable,
  findOnPath,
  isExecutable,
  type LocateOptions,
  makeOnce,
} from '../../infra/temporal/cached-tool.ts';
import type { GoTool } from '../../infra/temporal/go-tool.ts';

/** Finds a version of a tool in the cache, or builds it with `go`. */
export async function buildTool(
  tool: GoTool,
  version: string,
  options: LocateOptions,
  signal?: AbortSignal,
): Promise<Executable> {
  const target = cachedAt(tool.name, version, options.env);
  return await makeOnce(target, options, async () => {
    await buildOrExplain({ tool, target, failures: [], remedy: 'Install Go 1.21 or newer.' }, options, signal);
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
