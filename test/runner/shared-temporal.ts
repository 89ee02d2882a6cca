import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { locateTemporal } from '../../infra/temporal/executable.ts';
import { startDevServer } from '../../infra/temporal/server.ts';
import { sharedTemporalVariable } from '../helpers/temporal/temporal.ts';

export interface SharedTemporal {
  /** The variables by which the tests find the server. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts the one Temporal server of a test run; each suite gets a namespace of its own on it. */
export async function startSharedTemporal(env: NodeJS.ProcessEnv): Promise<SharedTemporal> {
  const directory = await mkdtemp(join(tmpdir(), 'temper-test-temporal-'));
  const { path: executable } = await locateTemporal({ env, progress: (line) => console.error(line) });
  const server = await startDevServer({
    executable,
    env,
    dbFile: join(directory, 'temporal.db'),
    logFile: join(directory, 'temporal.log'),
    port: 0,
    uiPort: null,
  });
  return {
    environment: { [sharedTemporalVariable]: server.address },
    async close() {
      await server.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
