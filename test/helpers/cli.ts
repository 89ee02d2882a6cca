import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestServer } from './temporal/temporal.ts';

const program = join(import.meta.dirname, '../../workers/cli.ts');

export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `temper` as a user types it, on the home of a test and its Temporal server. */
export function cliOn(
  home: string,
  server: Pick<TestServer, 'address' | 'namespace'>,
  variables: Readonly<Record<string, string>> = {},
) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = {
    PATH,
    HOME: home,
    // Without it each process would compile all of its modules again, which is most of its work.
    ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    TEMPER_HOME: home,
    TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
    TEMPORAL_ADDRESS: server.address,
    TEMPORAL_NAMESPACE: server.namespace,
    ...variables,
  };
  const start = (...args: readonly string[]): { readonly process: ChildProcess; readonly ended: Promise<CliRun> } => {
    const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]).then(
      ([stdout, stderr, [code]]) => ({ code, stdout, stderr }),
    );
    return { process: child, ended };
  };
  return { start, run: (...args: readonly string[]): Promise<CliRun> => start(...args).ended };
}
