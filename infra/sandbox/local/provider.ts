import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { attemptAll } from '../../attempt-all.ts';
import { createDirectSpawner } from '../../process/spawner/direct.ts';
import type { Spawner } from '../../process/spawner/spawner.ts';
import { SandboxFailure } from '../failure.ts';
import { requireSameEpoch } from '../labels.ts';
import { requireName } from '../names.ts';
import type {
  Sandbox,
  SandboxDescription,
  SandboxInfo,
  SandboxNeeds,
  SandboxProvider,
  UnsupportedReason,
} from '../sandbox.ts';
import { chooseConfinement, type NoConfinement } from './choose-confinement.ts';
import type { Confinement } from './confinement.ts';
import {
  createDirectory,
  detachDirectory,
  eraseDirectory,
  findDirectory,
  leftoverPaths,
  listDirectories,
} from './directories.ts';
import { endAccounts } from './end-processes.ts';
import type { SandboxDirectory } from './layout.ts';
import { createLocalSandbox } from './sandbox.ts';
import { createWatcher } from './watcher.ts';

export interface LocalProviderOptions {
  /** Directory of this machine's local sandboxes, private to the caller's user. */
  readonly root: string;
  readonly stack: string;
  /** The confinement to use. Default: the strongest that works here. */
  readonly confinement?: Confinement | NoConfinement;
  /** Starts the sandboxes' commands; the provider closes it. Default: this process forks for each. */
  readonly spawner?: Spawner;
}

/** Creates sandboxes without a container engine: directories of this host, whose commands are confined by namespaces. */
export function createLocalProvider(options: LocalProviderOptions): SandboxProvider {
  const { root, stack, confinement = chooseConfinement(root), spawner = createDirectSpawner() } = options;
  const watcher = createWatcher(spawner);
  const usable = (): Confinement => {
    if ('commandLine' in confinement) return confinement;
    throw new SandboxFailure('UnsupportedTask', `local sandboxes do not work on this host: ${explain(confinement)}`);
  };
  const open = (directory: SandboxDirectory): Sandbox =>
    createLocalSandbox(directory, { confinement: usable(), spawner, watcher });
  const home = join(root, requireName(stack));
  const find = (name: string): SandboxDirectory | undefined => findDirectory(join(home, requireName(name)));
  const erase = async (sandbox: SandboxDirectory): Promise<void> => {
    await endAccounts(sandbox, ['agent', 'grader']);
    await eraseDirectory(sandbox);
  };
  return {
    kind: 'local',
    programs: 'host',
    sharesProcesses: false,
    givesRoot: false,
    carriesChanges: true,
    channels: ['socket'],
    ensure: async (spec, signal) => {
      signal.throwIfAborted();
      usable();
      const directory = find(spec.name) ?? (await createDirectory(home, spec));
      requireSameEpoch(spec.name, spec.labels, directory.spec.labels);
      const sandbox = open(directory);
      for (const files of spec.files ?? []) await sandbox.putFiles(files, signal);
      return sandbox;
    },
    attach: async (name) => {
      const directory = find(name);
      return directory && open(directory);
    },
    remove: async (name) => {
      const directory = detachDirectory(home, name);
      if (directory) await erase(directory);
      return directory !== undefined;
    },
    list: async (ofStack) => listDirectories(join(root, requireName(ofStack))).map(infoOf),
    clearLeftovers: () =>
      attemptAll(leftoverPaths(home), `to finish every removal in ${home}`, async (path) => {
        const directory = findDirectory(path);
        // Nothing was ever started in a directory without a record.
        await (directory ? erase(directory) : rm(path, { recursive: true, force: true }));
      }),
    // The image is only a name here, since commands use the host's own programs.
    prepare: async ({ image }) => image,
    imageId: async (image) => image,
    evictImages: async () => [],
    supports: async (needs) => refusal(needs, confinement),
    describe: async () =>
      'commandLine' in confinement ? { kind: 'local', ready: true, ...confinement.describe } : unready(confinement),
    close: () => spawner.close(),
  };
}

const infoOf = ({ spec, createdAtMs }: SandboxDirectory): SandboxInfo => ({
  name: spec.name,
  kind: 'local',
  labels: spec.labels,
  createdAtMs,
  running: true,
});

function refusal(needs: SandboxNeeds, confinement: Confinement | NoConfinement): UnsupportedReason | undefined {
  const { task, paths, image, imageFrom, filesInImage } = needs;
  // In an empty directory every solution would fail its tests, and that would be scored.
  if (imageFrom === 'dockerfile' || filesInImage) {
    const need =
      imageFrom === 'dockerfile'
        ? 'an image built from its environment/Dockerfile'
        : `the image ${image}, which holds its files`;
    const message = `task ${task} needs ${need}, but local sandboxes have no images; use a host with Docker`;
    return { type: 'UnsupportedTask', message };
  }
  if ('commandLine' in confinement || paths.length === 0) return undefined;
  const message = `task ${task} needs a sandbox with ${paths.join(' and ')}: ${explain(confinement)}`;
  return { type: 'UnsupportedTask', message };
}

const explain = ({ reasons }: NoConfinement): string =>
  `no way to confine commands (${reasons.join('; ')}); install bubblewrap, allow user namespaces, or use --sandbox docker`;

const unready = (confinement: NoConfinement): SandboxDescription => ({
  kind: 'local',
  ready: false,
  summary: explain(confinement),
  protects: [],
  doesNotProtect: ['anything: commands are rejected'],
});
