import { fileURLToPath } from 'node:url';
import type { LocateOptions } from '../../../infra/temporal/cached-tool.ts';
import type { GoTool } from '../../../infra/temporal/go-tool.ts';
import type { Availability } from '../../runner/need.ts';
import { buildTool, canBuildTool, findTool } from '../go-tools.ts';
import { locateVersitygw } from '../store/versitygw.ts';
import { locateProduction } from '../temporal/production/locate.ts';

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

/**
 * Whether Docker Compose is in the cache, or may be built. Building takes minutes, so `npm test` does it in CI alone, and
 * `npm run test:deploy` everywhere.
 */
export async function probeCompose(env: LocateOptions['env'], mayBuild: boolean): Promise<Availability> {
  if ((await findTool(compose, composeVersion, env)) !== undefined) return { usable: true };
  if (mayBuild && (await canBuildTool(compose, composeVersion, env))) return { usable: true };
  return { usable: false, reason: 'it is not in the cache; `npm run test:deploy` builds it, with Go' };
}

const helmVersion = '4.3.1';

/** Helm, whose sources are a public Go module. */
const helm: GoTool = {
  name: 'helm',
  module: fileURLToPath(new URL('./helm', import.meta.url)),
  mainPackage: 'helm.sh/helm/v4/cmd/helm',
  linkerFlags: `-s -w -X helm.sh/helm/v4/internal/version.version=v${helmVersion}`,
  minutes: 8,
};

/** Finds Helm in the cache, or builds it; returns its path. */
export const locateHelm = async (options: LocateOptions): Promise<string> =>
  (await buildTool(helm, helmVersion, options)).path;

/** Builds the programs that the test of the containers needs, which takes longer than a test may. */
export async function prepareComposeTools(options: LocateOptions): Promise<void> {
  for (const locate of [locateCompose, locateProduction, locateVersitygw]) await locate(options);
}

/** Builds the programs that the tests of the deployables need. */
export async function prepareDeployTools(options: LocateOptions): Promise<void> {
  await prepareComposeTools(options);
  await locateHelm(options);
}

/** Whether Helm is in the cache. It is not built for the tests that need it alone: that takes minutes. */
export async function probeHelm(env: LocateOptions['env']): Promise<Availability> {
  if ((await findTool(helm, helmVersion, env)) !== undefined) return { usable: true };
  return { usable: false, reason: 'it is not in the cache; `npm run test:deploy` builds it' };
}
