import { spawn } from 'node:child_process';

/** What npm tells its scripts about the package that runs them; another npm below must not take it for its own. */
const OF_THE_OUTER_SCRIPT = /^(npm_package_|npm_lifecycle_|npm_config_local_prefix$|npm_config_global|INIT_CWD$)/;

/** Runs npm with its output on stderr; fails with what was expected, what came and what to do. */
export async function runNpm(args, directory, purpose) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THE_OUTER_SCRIPT.test(name)));
  const child = spawn('npm', args, { cwd: directory, env, stdio: ['ignore', process.stderr, process.stderr] });
  const ended = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.code === 'ENOENT' ? 'no npm on PATH' : error.message));
    child.once('exit', (code, signal) => resolve(code === 0 ? undefined : `exit ${code ?? signal}, see above`));
  });
  if (ended === undefined) return;
  throw new Error(
    `expected \`npm ${args[0]}\` to ${purpose}, got: ${ended}. ` +
      'Check the network, the registry (`npm config get registry`) and the free disk space, then run the same command again.',
  );
}
