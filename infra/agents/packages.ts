import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exists } from '../process/exists.ts';
import { withLock } from '../process/file-lock.ts';
import { runNpm } from '../process/npm.mjs';
import { touch } from '../process/touch.ts';
import type { SandboxMount } from '../sandbox/mount.ts';

/**
 * Agent programs that come from npm. Each has a directory beside this file, whose `package.json` names one exact version and
 * whose `package-lock.json` pins every dependency by its digest. A package is installed once per host and lockfile and
 * mounted read-only; none of its code runs on the host.
 */
export interface Packages {
  /** Installs the package unless this host has it, and returns its mount. Concurrent callers and processes share one install. */
  prepare(agent: PackagedAgent): Promise<SandboxMount>;
  /** Lists each agent with its pinned version and whether this host has it installed. */
  list(): Promise<readonly AgentPackage[]>;
}

export interface AgentPackage {
  readonly agent: PackagedAgent;
  readonly version: string;
  readonly installed: boolean;
}

export const packagedAgents = ['claude-code', 'codex', 'opencode', 'pi'] as const;
export type PackagedAgent = (typeof packagedAgents)[number];

/** The mount point inside a sandbox. */
const packagesTarget = '/temper-agent';

/** The path inside the sandbox of a file from an installed package. */
export const packageFile = (path: string): string => `${packagesTarget}/node_modules/${path}`;

const manifests = ['package.json', 'package-lock.json'] as const;
/** The options of npm. Sandboxes run Linux, whatever the host runs. Install scripts are off, since their downloads are not pinned. */
const platform = ['--os=linux', `--cpu=${process.arch}`, '--libc=glibc'] as const;
const npmArguments = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...platform] as const;

export function createPackages({ cacheDir }: { readonly cacheDir: string }): Packages {
  const prepared = new Map<PackagedAgent, Promise<SandboxMount>>();
  return {
    async prepare(agent) {
      const known = prepared.get(agent);
      // Retention removes a package that was not used for long.
      const mount = known !== undefined && (await touch((await known).source)) ? known : ensure(cacheDir, agent);
      prepared.set(agent, mount);
      mount.catch(() => prepared.delete(agent));
      return mount;
    },
    list: () =>
      Promise.all(
        packagedAgents.map(async (agent) => {
          const { directory, files } = await locatePackage(cacheDir, agent);
          return { agent, version: versionIn(files[0] ?? ''), installed: await exists(directory) };
        }),
      ),
  };
}

/** Finds the directory of a package, which is named after its content. */
async function locatePackage(cacheDir: string, agent: PackagedAgent) {
  const from = join(import.meta.dirname, agent);
  const files = await Promise.all(manifests.map((name) => readFile(join(from, name), 'utf8')));
  const key = createHash('sha256')
    .update(JSON.stringify([npmArguments, ...files]))
    .digest('hex')
    .slice(0, 16);
  return { directory: join(cacheDir, 'agents', `${agent}-${key}`), files, key };
}

const manifest = z.looseObject({ dependencies: z.record(z.string(), z.string()) });

const versionIn = (text: string): string => Object.values(manifest.parse(JSON.parse(text)).dependencies).join(', ');

/** Installs into a temporary directory and renames it, so that a partial installation is never visible. */
async function ensure(cacheDir: string, agent: PackagedAgent): Promise<SandboxMount> {
  const { directory, files, key } = await locatePackage(cacheDir, agent);
  const program = { name: agent, version: `${versionIn(files[0] ?? '')}-${key}` };
  const mount = { source: directory, target: packagesTarget, readOnly: true, program } as const;
  if (await touch(directory)) return mount;
  await withLock(`${directory}.lock`, async () => {
    if (!(await exists(directory))) await install(directory, agent, files);
  });
  return mount;
}

/** Runs under the lock, so that what an interrupted installation left behind can be removed first. */
async function install(directory: string, agent: PackagedAgent, files: readonly string[]): Promise<void> {
  const temporary = `${directory}.new`;
  await rm(temporary, { recursive: true, force: true });
  try {
    await mkdir(temporary, { recursive: true });
    for (const [index, name] of manifests.entries()) await writeFile(join(temporary, name), files[index] ?? '');
    await runNpm(npmArguments, temporary, `install the agent ${agent}`, { quiet: true }).catch((cause: unknown) => {
      throw new TemperFailure('AgentInstallFailed', errorMessage(cause), { cause });
    });
    // The agent's account in a sandbox differs from the host's account.
    await chmod(temporary, 0o755);
    await rename(temporary, directory);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
