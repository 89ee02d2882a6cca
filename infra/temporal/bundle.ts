import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { cacheDirectory } from '../process/cache.mjs';
import { withLock } from '../process/file-lock.ts';

/** The checkout, or `dist/` of the installed package. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PREBUILT = join(ROOT, 'workflow-bundle.js');
const ENTRY = join(ROOT, 'workflows/index.ts');
/** Loaded once for all workflows, and frozen. Our own schemas can't be among these: zod completes a schema at its first use. */
const SHARED = ['zod'];

export interface WorkflowBundle {
  readonly codePath: string;
}

/**
 * The workflows' code as a worker loads it: prebuilt in the installed package; in a checkout built once per state of the
 * sources and kept in the cache, so that a second start is instant.
 */
export async function locateWorkflowBundle(
  env: Readonly<Record<string, string | undefined>>,
  progress: (line: string) => void = () => {},
): Promise<WorkflowBundle> {
  if (await exists(PREBUILT)) return { codePath: PREBUILT };
  const directory = join(cacheDirectory(env), 'bundles');
  const codePath = join(directory, `${await sourcesDigest()}.js`);
  if (await exists(codePath)) return { codePath };
  await mkdir(directory, { recursive: true });
  await withLock(`${codePath}.lock`, async () => {
    if (await exists(codePath)) return;
    progress('bundling the workflows');
    await writeBundle(codePath);
  });
  return { codePath };
}

/** Bundles the checkout's workflows into a file; whole or not at all. */
export async function writeBundle(target: string): Promise<void> {
  const code = await bundleCode(ENTRY);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, code);
  await rename(draft, target);
}

/** Fails with what the bundler says, such as a Node module in a workflow's import chain. */
export async function bundleCode(workflowsPath: string): Promise<string> {
  const said: string[] = [];
  const logger = new DefaultLogger('ERROR', ({ message }) => said.push(message));
  try {
    return (await bundleWorkflowCode({ workflowsPath, logger, preloadModules: SHARED })).code;
  } catch (error) {
    throw new Error(`expected ${workflowsPath} to bundle as workflow code, got: ${said.join('\n')}`, { cause: error });
  }
}

/** Everything that the bundle is made of: our sources, and the packages as the lockfile pins them. */
async function sourcesDigest(): Promise<string> {
  const hash = createHash('sha256');
  const workflows = await readdir(join(ROOT, 'workflows'), { recursive: true });
  const sources = workflows.filter((path) => path.endsWith('.ts')).map((path) => join('workflows', path));
  for (const path of [...sources.sort(), 'infra/temporal/bundle.ts', 'package-lock.json']) {
    hash.update(`${path}\0`).update(
      createHash('sha256')
        .update(await readFile(join(ROOT, path)))
        .digest(),
    );
  }
  return hash.digest('hex').slice(0, 32);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
