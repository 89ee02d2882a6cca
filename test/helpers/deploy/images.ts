import { execFile } from 'node:child_process';
import { link, mkdtemp, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { cacheDirectory } from '../../../infra/process/cache.mjs';
import type { LocateOptions } from '../../../infra/temporal/cached-tool.ts';
import { locateTemporal } from '../../../infra/temporal/executable.ts';
import { withCheckoutBuild } from '../checkout-build.ts';
import { replaceImage } from '../sandbox/replace-image.ts';
import { repositoryRoot } from '../sources.ts';
import { locateVersitygw } from '../store/versitygw.ts';
import { locateProduction } from '../temporal/production/locate.ts';

const run = promisify(execFile);

/** Makes the image of temper's own processes; no registry is needed. */
export async function buildTemperImage(image: string): Promise<void> {
  const script = join(repositoryRoot, 'infra/deploy/image/build.sh');
  await withCheckoutBuild(() => replaceImage(image, () => run('sh', [script, image])));
}

/** Makes one image that stands for the public ones of PostgreSQL, Temporal and the S3 server. */
export async function buildServicesImage(image: string, options: LocateOptions): Promise<void> {
  const production = await locateProduction(options);
  const programs = [
    production.server,
    production.sqlTool,
    (await locateTemporal(options)).path,
    await locateVersitygw(options),
  ];
  const directory = await mkdtemp(join(cacheDirectory(options.env), 'programs-'));
  try {
    for (const program of programs) await link(program, join(directory, basename(program)));
    await replaceImage(image, () => run('sh', [join(import.meta.dirname, 'services/build.sh'), image, directory]));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
