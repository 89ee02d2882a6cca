import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleCode } from '../../../infra/temporal/bundle.ts';

const root = join(import.meta.dirname, '../../..');

/** Bundles the workflows as a worker loads them, with one file (a path below `workflows/`) changed in a copy. */
export async function bundleChanged(
  file: string,
  change: (source: string) => string,
): Promise<{ readonly code: string }> {
  const copy = await mkdtemp(join(tmpdir(), 'temper-changed-'));
  try {
    for (const directory of ['workflows', 'activities']) {
      await cp(join(root, directory), join(copy, directory), { recursive: true });
    }
    await cp(join(root, 'package.json'), join(copy, 'package.json'));
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
    const path = join(copy, 'workflows', file);
    const source = await readFile(path, 'utf8');
    const changed = change(source);
    assert.notEqual(changed, source, `expected ${file} to hold what is to be changed`);
    await writeFile(path, changed);
    return { code: await bundleCode(join(copy, 'workflows/index.ts')) };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Changes sweep/windows.ts so that a window has two rollouts, and a small sweep several windows. */
export const shrinkWindows = (source: string): string => source.replace('windowSize = 500', 'windowSize = 2');
