import { stat } from 'node:fs/promises';
import Docker from 'dockerode';
import { findDiskQuota } from '../../../../infra/sandbox/docker/disk-quota.ts';
import { sizeOfOwnImages } from '../../../../infra/sandbox/docker/images/evict.ts';
import { createImageUses } from '../../../../infra/sandbox/docker/images/uses.ts';
import { openProviders } from '../../../../infra/sandbox/providers.ts';
import type { Config } from '../../../../infra/settings/config.ts';
import { openStackId } from '../../../../infra/stack.ts';
import { openObjects } from '../../../../infra/store/shared-state.ts';
import { generatedImage } from '../../../../infra/tasks/generated/generate.ts';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';
import { sandboxKinds } from '../../../../workflows/contracts/sandbox-kinds.ts';
import { sandboxRemedies } from '../../stack/require-sandboxes.ts';
import { bytes, counted } from '../../text/output.ts';
import { type Check, missing, ok, type RunChecks, warn } from './checks.ts';
import { mayHaveHost } from './stack.ts';

/** Checks which kinds of sandbox work on this host, and names what each does not protect. */
export const checkSandboxes: RunChecks = async function* (config) {
  if (!(await mayHaveHost(config))) {
    yield ok('sandboxes', 'none are needed, since the stack has no host on this machine');
    return;
  }
  const stack = await openStackId(config.paths, await openObjects(config.store));
  const { all, unusable } = await openProviders({
    stack,
    root: config.paths.sandboxes,
    docker: config.docker,
    e2b: config.e2b,
    kubernetes: config.kubernetes,
    // One that is asked for and does not work is a line of the report, not the report's end.
    preferred: 'auto',
  });
  let ready = 0;
  for (const kind of sandboxKinds) {
    const provider = all.get(kind);
    const reason = unusable.get(kind);
    const isAskedFor = kind === config.sandbox;
    if (provider === undefined && reason === undefined && !isAskedFor) continue;
    const described = await provider?.describe();
    await provider?.close();
    if (described?.ready) {
      ready += 1;
      const gaps = described.doesNotProtect.join('; ');
      yield ok(`${kind} sandbox`, `${described.summary}${gaps === '' ? '' : ` (does not protect ${gaps})`}`);
      if (kind === 'docker') {
        yield await taskImage();
        yield await ownImages(config);
        yield await homeDisk(config);
      }
    } else {
      const found = described?.summary ?? reason ?? 'not configured; see the settings of such sandboxes';
      const check = isAskedFor ? missing : warn;
      yield check(`${kind} sandbox`, found, sandboxRemedies[kind]);
    }
  }
  if (ready === 0) yield missing('sandboxes', 'no kind of sandbox works on this host', 'set up one of the kinds above');
};

/** Checks the image of the generated tasks and of the packs; other tasks name their own. */
async function taskImage(): Promise<Check> {
  try {
    const { Id, Size } = await new Docker().getImage(generatedImage).inspect();
    return ok('task image', `${generatedImage} (${Id.slice(7, 19)}, ${Math.round(Size / 1e6)} MB)`);
  } catch (error) {
    return warn(
      'task image',
      `${generatedImage}: ${errorMessage(error)}`,
      'build it with infra/images/build.sh if you run generated tasks in Docker; local sandboxes do not need it',
    );
  }
}

/** Checks whether agents can fill the disk of the journals and of the store, where that is a directory. */
async function homeDisk({ home }: Config): Promise<Check> {
  const { enforced, root, driver } = await findDiskQuota(new Docker());
  if (enforced) return ok('quotas', `the kernel limits what an agent writes, by quotas of ${driver}`);
  const [ofHome, ofContainers] = await Promise.all([home, root].map((path) => stat(path).catch(() => null)));
  if (ofHome?.dev !== ofContainers?.dev)
    return ok('quotas', "this home is on another file system than Docker's containers");
  const text = `an agent may fill the disk of this home between two looks: it holds Docker's containers (${root}), and ${driver} has no quotas`;
  return ok('quotas', `${text}; on a host of a fleet, put TEMPER_HOME on a volume of its own`);
}

/** Measures the images that temper pulled or built on this host. The reaper removes the least recently used beyond the budget. */
async function ownImages({ paths, docker: { imageDiskGb } }: Config): Promise<Check> {
  const { count, bytes: size } = await sizeOfOwnImages(new Docker(), createImageUses(paths.images));
  const budget = imageDiskGb === 0 ? 'no limit' : `of ${imageDiskGb} GB`;
  const found = `${counted(count, 'image')} that temper pulled or built: ${bytes(size)}, ${budget} (TEMPER_IMAGE_DISK_GB)`;
  return { ...ok('images', found), figures: { images: size } };
}
