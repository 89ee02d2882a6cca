import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeBundle } from '../temporal/bundle.ts';

/**
 * Makes `dist/`, the installable package: JavaScript of everything but the tests and this set-up, the files that the code
 * reads beside itself, and the workflow bundle.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');
const SOURCES = ['workflows', 'activities', 'workers', 'infra'];

await rm(DIST, { recursive: true, force: true });
await compile();
await copyAssets();
await writeBundle(join(DIST, 'workflow-bundle.js'));

async function compile(): Promise<void> {
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const child = spawn(tsc, ['-p', join(ROOT, 'tsconfig.build.json')], { cwd: ROOT, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`expected tsc to compile the package, it ended with ${code}`);
}

/** Whatever is no TypeScript goes along as it is: the code finds it by its place beside itself. */
async function copyAssets(): Promise<void> {
  for (const source of SOURCES) {
    const entries = await readdir(join(ROOT, source), { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (!entry.isFile() || /\.m?ts$/.test(entry.name)) continue;
      const from = join(entry.parentPath, entry.name);
      const to = join(DIST, from.slice(ROOT.length));
      await mkdir(dirname(to), { recursive: true });
      await copyFile(from, to);
    }
  }
}
