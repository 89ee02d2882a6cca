import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Config } from '../../infra/settings/config.ts';
import type { Executable } from '../../infra/temporal/cached-tool.ts';
import { locateTemporal } from '../../infra/temporal/executable.ts';
import { startDevServer } from '../../infra/temporal/server.ts';
import type { Part } from './part.ts';

/**
 * Makes a part of Temporal's dev server on the home's SQLite file. `progress` receives lines about downloads and
 * builds, which take minutes.
 */
export function temporalPart(config: Config, progress: (line: string) => void): Part {
  const logFile = join(config.paths.logs, 'temporal.log');
  let executable: Executable | null = null;
  return {
    name: 'temporal',
    logFile,
    async start(signal) {
      executable ??= await locateTemporal({ env: config.env, progress }, signal);
      let release = (): void => undefined;
      const server = await startDevServer(
        {
          executable: executable.path,
          env: config.env,
          dbFile: config.paths.database,
          logFile,
          port: config.temporalPort,
          uiPort: config.uiPort,
          onSpawn(pid) {
            release(); // the tether of an earlier try, whose port was in use
            release = tether(pid);
          },
        },
        signal,
      ).catch((error: unknown) => {
        release();
        throw error;
      });
      void server.exited.then(() => release());
      return { pid: server.pid, exited: server.exited, stop: () => server.stop() };
    },
  };
}

/**
 * Ends another process when this one ends, which the other cannot detect. A shell waits for the end of its stdin, which
 * is a pipe from this process and so closes even if this process is killed. Returns a function that ends the shell.
 */
function tether(pid: number): () => void {
  const script = 'read -r _; kill -TERM "$1" && sleep 10 && kill -KILL "$1"';
  const shell = spawn('sh', ['-c', script, 'tether', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  shell.stdin.on('error', () => undefined); // the shell ended first
  return () => shell.kill('SIGKILL');
}
