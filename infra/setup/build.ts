import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programFiles } from '../agents/runtime.ts';
import { writeBundle } from '../temporal/bundle.ts';

// Builds `dist/`, the installable package: JavaScript of everything but the tests and this set-up, declarations of what
// the package exports, the files that the code reads from its own folders, and the workflow bundle.

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'dist');
const sources = ['workflows', 'activities', 'workers', 'infra'];
/** The folder that packages the product for containers, and is no part of it. */
const deployables = join(root, 'infra/deploy');

await rm(dist, { recursive: true, force: true });
await compile('tsconfig.build.json');
await compile('tsconfig.types.json');
for (const [path, text] of await programFiles()) await writeFile(join(dist, 'infra/agents', path), text);
await copyAssets();
await writeBundle(join(dist, 'workflow-bundle.js'));

/** Compiles without a look at the types, which `npm run check` checks: that takes three quarters of the time. */
async function compile(config: string): Promise<void> {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const child = spawn(tsc, ['-p', join(root, config), '--noCheck'], { cwd: root, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`tsc could not compile the package: it ended with ${code}`);
}

/** Copies every file that is not TypeScript, since the code finds such files relative to itself. */
async function copyAssets(): Promise<void> {
  for (const source of sources) {
    const entries = await readdir(join(root, source), { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (!entry.isFile() || /\.m?ts$/.test(entry.name) || entry.parentPath.startsWith(deployables)) continue;
      const from = join(entry.parentPath, entry.name);
      const to = join(dist, from.slice(root.length));
      await mkdir(dirname(to), { recursive: true });
      await copyFile(from, to);
    }
  }
}
