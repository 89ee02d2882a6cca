import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../process/cache.mjs';
import { runNpm } from '../process/npm.mjs';
import { say } from '../process/report.mjs';
import { withLock } from './lock.mjs';

/** Installs the checkout's npm packages unless node_modules matches package-lock.json. */
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
      await runNpm(
        ['ci', '--no-audit', '--no-fund', '--loglevel=error'],
        root,
        'install the packages of package-lock.json',
      );
    },
    { onWait },
  );
}

/** Whether the npm packages are installed. npm records them in node_modules last, so an interrupted install has no record. */
export function isInstalled(root) {
  const wanted = readPackages(join(root, 'package-lock.json'));
  if (wanted === undefined) throw new Error(`${root} has no package-lock.json; run this in a checkout of temper`);
  const installed = readPackages(join(root, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const found = installed[path];
    // Packages for other platforms are optional and not installed.
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
