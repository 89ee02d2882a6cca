import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { withLock } from '../process/lock.mjs';
import { runNpm } from '../process/npm.mjs';
import type { ReadOnlyMount } from './agent.ts';

/**
 * The programs of agents that come from npm. Beside this file is a directory for each, whose `package.json` names one exact
 * version and whose `package-lock.json` pins all that comes with it by its digest. Installed once per host and lockfile,
 * mounted read-only; nothing of a package runs on the host.
 */
export interface Packages {
  /** Makes it ready, and says what to mount where. Concurrent callers and processes share one. */
  prepare(agent: PackagedAgent): Promise<ReadOnlyMount>;
  /** Each agent with its pinned version, and whether this host has it already. */
  list(): Promise<readonly PackageFacts[]>;
}

export interface PackageFacts {
  readonly agent: PackagedAgent;
  readonly version: string;
  readonly installed: boolean;
}

const packagedAgents = ['claude-code', 'codex', 'opencode', 'pi'] as const;
export type PackagedAgent = (typeof packagedAgents)[number];

/** Where it is mounted in a sandbox. */
const packagesTarget = '/temper-agent';

/** A file of an installed package as the sandbox sees it. */
export const packageFile = (path: string): string => `${packagesTarget}/node_modules/${path}`;

const manifests = ['package.json', 'package-lock.json'] as const;
/** Sandboxes run Linux, whatever the host is. A package's own scripts never run: what they would download is pinned by nothing. */
const platform = ['--os=linux', `--cpu=${process.arch}`, '--libc=glibc'] as const;
const install = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...platform] as const;

export function createPackages({ cacheDir }: { readonly cacheDir: string }): Packages {
  const prepared = new Map<PackagedAgent, Promise<string>>();
  return {
    async prepare(agent) {
      const directory = prepared.get(agent) ?? ensure(cacheDir, agent);
      prepared.set(agent, directory);
      directory.catch(() => prepared.delete(agent));
      return { source: await directory, target: packagesTarget };
    },
    list: () =>
      Promise.all(
        packagedAgents.map(async (agent) => {
          const { directory, files } = await placeOf(cacheDir, agent);
          return { agent, version: versionIn(files[0] ?? ''), installed: await isThere(directory) };
        }),
      ),
  };
}

/** Named after its content. */
async function placeOf(cacheDir: string, agent: PackagedAgent) {
  const from = join(import.meta.dirname, agent);
  const files = await Promise.all(manifests.map((name) => readFile(join(from, name), 'utf8')));
  const key = createHash('sha256')
    .update(JSON.stringify([install, ...files]))
    .digest('hex')
    .slice(0, 16);
  return { directory: join(cacheDir, 'agents', `${agent}-${key}`), files };
}

const manifest = z.looseObject({ dependencies: z.record(z.string(), z.string()) });

/** A manifest names one package. */
const versionIn = (text: string): string => Object.values(manifest.parse(JSON.parse(text)).dependencies).join(', ');

/** Made beside its place and renamed into it: a half-made one is never seen. */
async function ensure(cacheDir: string, agent: PackagedAgent): Promise<string> {
  const { directory, files } = await placeOf(cacheDir, agent);
  if (await isThere(directory)) return directory;
  await withLock(`${directory}.lock`, async () => {
    if (!(await isThere(directory))) await make(directory, agent, files);
  });
  return directory;
}

/** Under the lock: what a process left that died on the way is cleared away first. */
async function make(directory: string, agent: PackagedAgent, files: readonly string[]): Promise<void> {
  const temporary = `${directory}.new`;
  await rm(temporary, { recursive: true, force: true });
  try {
    await mkdir(temporary, { recursive: true });
    for (const [index, name] of manifests.entries()) await writeFile(join(temporary, name), files[index] ?? '');
    await runNpm(install, temporary, `bring the agent ${agent}`, { quiet: true }).catch((cause: unknown) => {
      throw new TemperFailure('AgentUnavailable', errorMessage(cause), { cause });
    });
    // The agent's account in a sandbox is not the host's.
    await chmod(temporary, 0o755);
    await rename(temporary, directory);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

const isThere = (directory: string): Promise<boolean> =>
  stat(directory).then(
    () => true,
    () => false,
  );
