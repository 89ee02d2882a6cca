import Docker from 'dockerode';
import { openProviders } from '../../../../infra/sandbox/index.ts';
import { openStack } from '../../../../infra/stack.ts';
import { generatedImage } from '../../../../infra/tasks/generated/generate.ts';
import { type Check, type Look, message, missing, ok, warn } from './check.ts';

/** What kinds of sandbox this host has, and what each plainly does not protect. */
export const checkSandboxes: Look = async function* (config) {
  const stack = await openStack(config.paths);
  const { all } = await openProviders({
    stack: stack.id,
    root: config.paths.sandboxes,
    docker: config.docker,
    preferred: config.sandbox,
  });
  let ready = 0;
  for (const kind of ['docker', 'local'] as const) {
    const provider = all.get(kind);
    const described = await provider?.describe();
    await provider?.close();
    if (described?.ready) {
      ready += 1;
      const gaps = described.doesNotProtect.join('; ');
      yield ok(`${kind} sandbox`, `${described.summary}${gaps === '' ? '' : ` (does not protect: ${gaps})`}`);
      if (kind === 'docker') yield await taskImage();
    } else {
      const found = described?.summary ?? 'not available on this host';
      yield warn(`${kind} sandbox`, found, remedies[kind]);
    }
  }
  if (ready === 0) yield missing('sandboxes', 'none of the kinds works here', 'make one of the two above work');
};

/** The image of the generated tasks and of the packs; other tasks name their own. */
async function taskImage(): Promise<Check> {
  try {
    const { Id, Size } = await new Docker().getImage(generatedImage).inspect();
    return ok('task image', `${generatedImage} (${Id.slice(7, 19)}, ${Math.round(Size / 1e6)} MB)`);
  } catch (error) {
    return warn(
      'task image',
      `${generatedImage}: ${message(error)}`,
      'build it with infra/images/build.sh; local sandboxes do not need it',
    );
  }
}

const remedies = {
  docker: 'install and start Docker Engine, and let this user reach its socket; tasks that bring an image need it',
  local: 'install bubblewrap, or allow unprivileged user namespaces',
} as const;
