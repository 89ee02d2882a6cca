import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { cacheDirectory } from '../process/cache.mjs';
import { exists } from '../process/exists.ts';
import { withLock } from '../process/file-lock.ts';
import { touch } from '../process/touch.ts';

/** The checkout, or `dist/` of the installed package. */
const root = fileURLToPath(new URL('../..', import.meta.url));
const prebuilt = join(root, 'workflow-bundle.js');
const entry = join(root, 'workflows/index.ts');
/** The module beside the entry that loads what all workflows share. */
const preloadFile = 'preload.ts';

export interface WorkflowBundle {
  readonly codePath: string;
}

/**
 * Returns the workflows' code for a worker. It is prebuilt in the installed package; in a checkout it is built once per state of
 * the sources and cached, so that a second start is instant.
 */
export async function locateWorkflowBundle(
  env: Readonly<Record<string, string | undefined>>,
  progress: (line: string) => void = () => {},
): Promise<WorkflowBundle> {
  if (await exists(prebuilt)) return { codePath: prebuilt };
  const directory = join(cacheDirectory(env), 'bundles');
  const codePath = join(directory, `${await sourcesDigest()}.js`);
  if (await touch(codePath)) return { codePath };
  await mkdir(directory, { recursive: true });
  await withLock(`${codePath}.lock`, async () => {
    if (await exists(codePath)) return;
    progress('bundling the workflows');
    await writeInOwnProcess(codePath);
  });
  return { codePath };
}

/** Bundles in a process of its own, because a bundler leaves the process that ran it 100 MB larger for as long as it lives. */
async function writeInOwnProcess(target: string): Promise<void> {
  const program = fileURLToPath(new URL('write-bundle.ts', import.meta.url));
  await promisify(execFile)(process.execPath, [program, target]).catch((error: { readonly stderr?: string }) => {
    throw new Error(error.stderr?.trim() || `expected ${program} to bundle the workflows`, { cause: error });
  });
}

/** Bundles the checkout's workflows into a file, which is never visible half written. */
export async function writeBundle(target: string): Promise<void> {
  const code = await bundleCode(entry);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, code);
  await rename(draft, target);
}

/**
 * Bundles workflow code, with its `preload.ts` if it has one. Throws with the bundler's message, such as a Node module
 * in a workflow's import chain.
 */
export async function bundleCode(workflowsPath: string): Promise<string> {
  const messages: string[] = [];
  const preload = join(dirname(workflowsPath), preloadFile);
  const preloadModules = (await exists(preload)) ? [preload] : [];
  const logger = new DefaultLogger('ERROR', ({ message }) => messages.push(message));
  try {
    return (await bundleWorkflowCode({ workflowsPath, logger, preloadModules })).code;
  } catch (error) {
    throw new Error(
      `expected ${workflowsPath} to bundle as workflow code, got: ${[...messages, errorMessage(error)].join('\n')}`,
      {
        cause: error,
      },
    );
  }
}

/** Digest of everything in the bundle: the sources, and the packages as the lockfile pins them. */
async function sourcesDigest(): Promise<string> {
  const hash = createHash('sha256');
  const workflows = await readdir(join(root, 'workflows'), { recursive: true });
  const sources = workflows.filter((path) => path.endsWith('.ts')).map((path) => join('workflows', path));
  for (const path of [...sources.sort(), 'infra/temporal/bundle.ts', 'package-lock.json']) {
    hash.update(`${path}\0`).update(
      createHash('sha256')
        .update(await readFile(join(root, path)))
        .digest(),
    );
  }
  return hash.digest('hex').slice(0, 32);
}
