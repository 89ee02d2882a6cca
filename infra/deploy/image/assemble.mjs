// Copies what temper's processes need from a checkout that was built: the package, and its dependencies for this platform.
// node infra/deploy/image/assemble.mjs CHECKOUT TARGET
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const [checkout, target] = process.argv.slice(2);
if (checkout === undefined || target === undefined) throw new Error('expected a checkout and a target directory');

/** The folders of prebuilt programs whose names do not begin with this platform. */
const platforms = {
  '@temporalio/core-bridge/releases': { x64: 'x86_64-unknown-linux-gnu', arm64: 'aarch64-unknown-linux-gnu' },
  '/prebuilds': { x64: 'linux-x64', arm64: 'linux-arm64' },
};
/** Files that only a reader or a compiler wants. */
const unused = /\.(?:map|d\.[cm]?ts)$/;

const { packages } = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8'));
for (const path of ['package.json', 'LICENSE', 'dist']) copy(path);
for (const folder of ['infra/setup', 'infra/process']) {
  for (const name of readdirSync(join(checkout, folder))) if (name.endsWith('.mjs')) copy(join(folder, name));
}
for (const [path, { dev, optional }] of Object.entries(packages)) {
  if (path === '' || dev === true) continue;
  // Packages for other platforms are optional and not installed.
  if (existsSync(join(checkout, path))) copy(path);
  else if (optional !== true) throw new Error(`${path} is not installed; run npm ci first`);
}

function copy(path) {
  const source = join(checkout, path);
  mkdirSync(dirname(join(target, path)), { recursive: true });
  cpSync(source, join(target, path), { recursive: true, dereference: false, filter: (from) => isWanted(from, source) });
}

/** Nested packages are copied by their own paths. */
function isWanted(from, source) {
  if (from !== source && basename(from) === 'node_modules') return false;
  if (unused.test(from)) return false;
  const parent = dirname(from);
  const wanted = Object.entries(platforms).find(([folder]) => parent.endsWith(folder))?.[1][process.arch];
  return wanted === undefined || basename(from) === wanted;
}
