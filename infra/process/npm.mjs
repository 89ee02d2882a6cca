import { spawn } from 'node:child_process';

/** What npm tells its scripts about the package that runs them; another npm below must not take it for its own. */
const OF_THE_OUTER_SCRIPT = /^(npm_package_|npm_lifecycle_|npm_config_local_prefix$|npm_config_global|INIT_CWD$)/;
const LAST_WORDS = 600;

/** Runs npm with its output on stderr, or kept for the error; fails with what was expected, what came and what to do. */
export async function runNpm(args, directory, purpose, { quiet = false } = {}) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THE_OUTER_SCRIPT.test(name)));
  const output = quiet ? 'pipe' : process.stderr;
  const child = spawn('npm', args, { cwd: directory, env, stdio: ['ignore', output, output] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-LAST_WORDS);
    });
  }
  const ended = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.code === 'ENOENT' ? 'no npm on PATH' : error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `exit ${code ?? signal}, see above`));
  });
  if (ended === undefined) return;
  const got = quiet && said !== '' ? ended.replace('see above', `its last words:\n${said.trim()}\n`) : ended;
  throw new Error(
    `expected \`npm ${args[0]}\` to ${purpose}, got: ${got}. ` +
      'Check the network, the registry (`npm config get registry`) and the free disk space, then run the same command again.',
  );
}
