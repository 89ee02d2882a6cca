import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../process/cache.mjs';
import { runNpm } from '../process/npm.mjs';
import { say } from '../process/report.mjs';
import { withLock } from './lock.mjs';

/** Installs the checkout's npm packages when node_modules is missing or not what package-lock.json says. */
export async function ensureDependencies(root) {
  if (isInstalled(root)) return;
  const name = createHash('sha256').update(root).digest('hex').slice(0, 16);
  const onWait = ({ pid }) => say(`waiting for process ${pid}, which is installing the npm packages`);
  const lock = join(cacheDirectory(process.env), 'locks', `npm-${name}.lock`);
  await withLock(
    lock,
    async () => {
      if (isInstalled(root)) return;
      say('installing the npm packages');
      await runNpm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], root, 'install what package-lock.json names');
    },
    { onWait },
  );
}

/** npm notes in node_modules what it put there, after everything else; a broken-off install has no such note. */
export function isInstalled(root) {
  const wanted = readPackages(join(root, 'package-lock.json'));
  if (wanted === undefined)
    throw new Error(`expected ${root} to hold a package-lock.json; is it a checkout of temper?`);
  const installed = readPackages(join(root, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    // Packages for other platforms are optional and stay away.
    return found === undefined ? entry.optional === true : found.version === entry.version;
  });
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
