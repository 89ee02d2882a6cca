import { fileURLToPath } from 'node:url';
import { buildTool, type LocateOptions } from '../../../infra/temporal/executable.ts';
import type { GoTool } from '../../../infra/temporal/go-tool.ts';

const composeVersion = '2.40.3';

/** Docker Compose as a program of its own, whose sources are a public Go module. */
const compose: GoTool = {
  name: 'docker-compose',
  module: fileURLToPath(new URL('./compose', import.meta.url)),
  mainPackage: 'github.com/docker/compose/v2/cmd',
  linkerFlags: `-s -w -X github.com/docker/compose/v2/internal.Version=v${composeVersion}`,
  minutes: 5,
};

/** Finds Docker Compose in the cache, or builds it; returns its path. */
export const locateCompose = async (options: LocateOptions): Promise<string> =>
  (await buildTool(compose, composeVersion, options)).path;
