import { spawn } from 'node:child_process';

/** Variables that npm sets for the scripts of one package; a nested npm must not inherit them. */
const outerScriptVariables = /^(npm_package_|npm_lifecycle_|npm_config_local_prefix$|npm_config_global|INIT_CWD$)/;
const quotedCharacters = 600;

/** Runs npm with its output on stderr, or `quiet` with its output in the error. Throws an error that says what to do. */
export async function runNpm(args, directory, purpose, { quiet = false } = {}) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !outerScriptVariables.test(name)));
  const output = quiet ? 'pipe' : process.stderr;
  const child = spawn('npm', args, { cwd: directory, env, stdio: ['ignore', output, output] });
  let tail = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      tail = (tail + text).slice(-quotedCharacters);
    });
  }
  const ended = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.code === 'ENOENT' ? 'no npm on PATH' : error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `exit ${code ?? signal}, see above`));
  });
  if (ended === undefined) return;
  const got = quiet && tail !== '' ? ended.replace('see above', `last output:\n${tail.trim()}\n`) : ended;
  throw new Error(
    `\`npm ${args[0]}\` could not ${purpose}: ${got}. ` +
      'Check the network, the registry (`npm config get registry`) and the free disk space, then run the same command again.',
  );
}
