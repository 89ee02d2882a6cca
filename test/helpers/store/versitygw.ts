import { fileURLToPath } from 'node:url';
import type { LocateOptions } from '../../../infra/temporal/cached-tool.ts';
import type { GoTool } from '../../../infra/temporal/go-tool.ts';
import type { Availability } from '../../runner/need.ts';
import { buildTool, canBuildTool } from '../go-tools.ts';

const version = '1.8.0';

/** An S3 server on a directory, with conditional writes, whose sources are a public Go module. */
const versitygw: GoTool = {
  name: 'versitygw',
  module: fileURLToPath(new URL('./versitygw', import.meta.url)),
  mainPackage: 'github.com/versity/versitygw/cmd/versitygw',
  linkerFlags: '-s -w',
  minutes: 2,
};

/** Finds the server in the cache, or builds it; returns its path. */
export async function locateVersitygw(options: LocateOptions): Promise<string> {
  return (await buildTool(versitygw, version, options)).path;
}

/** Whether the tests that need an S3 server can run here. */
export async function probeS3(env: LocateOptions['env']): Promise<Availability> {
  if (await canBuildTool(versitygw, version, env)) return { usable: true };
  return { usable: false, reason: 'there is no Go to build the S3 server with, which is not in the cache either' };
}
