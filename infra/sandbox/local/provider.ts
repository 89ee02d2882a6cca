/** Sandboxes without a container engine: directories of this host, each shut in by the strongest means it offers. */
import { join } from 'node:path';
import { attemptAll } from '../../attempt-all.ts';
import { SandboxFailure } from '../failure.ts';
import { requireSameAttempt } from '../labels.ts';
import { requireName } from '../names.ts';
import type { SandboxDescription, SandboxInfo, SandboxNeeds, SandboxProvider, SandboxRefusal } from '../sandbox.ts';
import type { Confinement } from './confinement.ts';
import { chooseConfinement, type NoConfinement } from './confinements.ts';
import { endAccounts } from './ending.ts';
import type { LocalPlace } from './layout.ts';
import { detachPlace, eraseHalfMade, erasePlace, findPlace, leftoversIn, listPlaces, makePlace } from './places.ts';
import { LocalSandbox } from './sandbox.ts';

export interface LocalProviderOptions {
  /** Directory of this machine's local sandboxes; private to the caller's user. */
  readonly root: string;
  readonly stack: string;
  /** Default: the strongest that works here. */
  readonly confinement?: Confinement | NoConfinement;
}

export function createLocalProvider(options: LocalProviderOptions): SandboxProvider {
  const { root, stack, confinement = chooseConfinement(root) } = options;
  const usable = (): Confinement => {
    if ('commandLine' in confinement) return confinement;
    throw new SandboxFailure(
      'UnsupportedTask',
      `expected local sandboxes to work on this host, got ${why(confinement)}`,
    );
  };
  const home = join(root, requireName(stack));
  const find = (name: string): LocalPlace | undefined => findPlace(join(home, requireName(name)));
  const end = async (place: LocalPlace): Promise<void> => {
    await endAccounts(place, ['agent', 'grader']);
    await erasePlace(place);
  };
  return {
    kind: 'local',
    ensure: async (spec, signal) => {
      signal.throwIfAborted();
      usable();
      const place = find(spec.name) ?? (await makePlace(home, spec));
      requireSameAttempt(spec.name, spec.labels, place.spec.labels);
      return new LocalSandbox(place, usable());
    },
    attach: async (name) => {
      const place = find(name);
      return place && new LocalSandbox(place, usable());
    },
    remove: async (name) => {
      const place = detachPlace(home, name);
      if (place) await end(place);
      return place !== undefined;
    },
    list: async (ofStack) => listPlaces(join(root, requireName(ofStack))).map(infoOf),
    clearLeftovers: () =>
      attemptAll(leftoversIn(home), `all that removals left in ${home} to be removed`, async (directory) => {
        const place = findPlace(directory);
        await (place ? end(place) : eraseHalfMade(directory));
      }),
    // Its tools are the host's own, whatever image a task names.
    prepare: async ({ image }) => image,
    // The programs are the host's, whatever the name.
    imageId: async (image) => image,
    evictImages: async () => [],
    supports: async (needs) => refusal(needs, confinement),
    describe: async () =>
      'commandLine' in confinement ? { kind: 'local', ready: true, ...confinement.describe } : unready(confinement),
    close: async () => undefined,
  };
}

const infoOf = ({ spec, createdAtMs }: LocalPlace): SandboxInfo => ({
  name: spec.name,
  kind: 'local',
  labels: spec.labels,
  createdAtMs,
  running: true,
});

function refusal(needs: SandboxNeeds, confinement: Confinement | NoConfinement): SandboxRefusal | undefined {
  const { task, paths, image, imageFrom, filesInImage } = needs;
  // In an empty directory every solution would fail its tests, and be scored.
  if (imageFrom === 'dockerfile' || filesInImage) {
    const made =
      imageFrom === 'dockerfile'
        ? 'built from its environment/Dockerfile'
        : `made of image ${image}, which holds its files`;
    const message = `expected for task ${task} a sandbox ${made}, got local ones, which have no images; use a host with Docker`;
    return { type: 'UnsupportedTask', message };
  }
  if ('commandLine' in confinement || paths.length === 0) return undefined;
  const message = `expected for task ${task} a sandbox with ${paths.join(' and ')}, got ${why(confinement)}`;
  return { type: 'UnsupportedTask', message };
}

const why = ({ reasons }: NoConfinement): string =>
  `no way to shut commands in (${reasons.join('; ')}); install bubblewrap, allow user namespaces, or use --sandbox docker`;

const unready = (confinement: NoConfinement): SandboxDescription => ({
  kind: 'local',
  ready: false,
  summary: why(confinement),
  protects: [],
  doesNotProtect: ['anything: commands are refused'],
});
