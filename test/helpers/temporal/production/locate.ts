import { access, constants, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LocateOptions } from '../../../../infra/temporal/cached-tool.ts';
import type { GoTool } from '../../../../infra/temporal/go-tool.ts';
import type { Availability } from '../../../runner/need.ts';
import { buildTool, canBuildTool } from '../../go-tools.ts';

const version = '1.31.2';

/** The programs of a production server, from one Go module: the server, and the tool that sets its database up. */
const serverTool: GoTool = {
  name: 'temporal-server',
  module: fileURLToPath(new URL('./module', import.meta.url)),
  mainPackage: 'go.temporal.io/server/cmd/server',
  linkerFlags: '-s -w',
  minutes: 2,
};
const sqlTool: GoTool = {
  ...serverTool,
  name: 'temporal-sql-tool',
  mainPackage: 'go.temporal.io/server/cmd/tools/sql',
  minutes: 1,
};

/** The directory in which Debian keeps PostgreSQL's programs, by version; they are not on PATH. */
const debianDirectory = '/usr/lib/postgresql';

/** The executables of a Temporal server on PostgreSQL. */
export interface ProductionPrograms {
  readonly server: string;
  readonly sqlTool: string;
  /** The directory of `initdb`, `postgres` and `pg_isready`. */
  readonly postgresql: string;
}

/** Finds the programs, or builds those that are built from source. */
export async function locateProduction(options: LocateOptions): Promise<ProductionPrograms> {
  const postgresql = await findPostgresql(options.env);
  if (postgresql === undefined) throw new Error(noPostgresql);
  const server = await buildTool(serverTool, version, options);
  const tool = await buildTool(sqlTool, version, options);
  return { server: server.path, sqlTool: tool.path, postgresql };
}

/** Whether the tests that need a Temporal server on PostgreSQL can run here. */
export async function probePostgres(env: LocateOptions['env']): Promise<Availability> {
  if ((await findPostgresql(env)) === undefined) return { usable: false, reason: noPostgresql };
  for (const tool of [serverTool, sqlTool]) {
    if (await canBuildTool(tool, version, env)) continue;
    return { usable: false, reason: `there is no Go to build ${tool.name} with, which is not in the cache either` };
  }
  return { usable: true };
}

const noPostgresql = 'PostgreSQL is not installed; on Debian, `apt-get install postgresql`';

/** Finds the directory with PostgreSQL's programs: the newest of Debian's, or one on PATH. */
async function findPostgresql(env: LocateOptions['env']): Promise<string | undefined> {
  const versions = (await readdir(debianDirectory).catch((): string[] => [])).sort((a, b) => Number(b) - Number(a));
  const candidates = [
    ...versions.map((one) => join(debianDirectory, one, 'bin')),
    ...(env.PATH ?? '').split(delimiter).filter((directory) => directory !== ''),
  ];
  for (const directory of candidates) {
    const found = await access(join(directory, 'initdb'), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return directory;
  }
  return undefined;
}
