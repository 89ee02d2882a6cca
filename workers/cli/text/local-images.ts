import { generatedImage } from '../../../infra/tasks/generated/generate.ts';
import { isRemote, type SandboxChoice } from '../../../workflows/contracts/sandbox-kinds.ts';

const namedImages = 3;

/**
 * Describes what becomes of tasks that need an image where the kind of sandbox that the settings prefer has none; null where it
 * has.
 *
 * @param dockerProblem the reason why Docker cannot be used on this host; null if it can
 */
export function withoutImages(preferred: SandboxChoice, dockerProblem: string | null): string | null {
  if (preferred === 'local') {
    return 'they are refused, since TEMPER_SANDBOX is local, and local sandboxes have no images: name another kind (--sandbox docker), or change the setting';
  }
  if (dockerProblem === null || isRemote(preferred)) return null;
  if (preferred === 'docker')
    return `they cannot start, since TEMPER_SANDBOX is docker and not ready: ${dockerProblem}`;
  return `they are refused, since local sandboxes, which are used without Docker, have no images; Docker is not ready: ${dockerProblem}`;
}

/**
 * Describes what tasks lose if their sandboxes are local, which have no images; null if they lose nothing, or if the host
 * decides. Generated tasks need no more than any host has.
 *
 * @param preferred the kind that the stack's settings prefer, which is what `auto` means
 */
export function lostImages(choice: SandboxChoice, preferred: SandboxChoice, images: Iterable<string>): string | null {
  if ((choice === 'auto' ? preferred : choice) !== 'local') return null;
  const lost = [...new Set(images)].filter((image) => image !== generatedImage);
  if (lost.length === 0) return null;
  const more = lost.length > namedImages ? ` and ${lost.length - namedImages} more` : '';
  const named = `${lost.slice(0, namedImages).join(', ')}${more}`;
  return `local sandboxes have the programs of this machine, not those of the tasks' images (${named}): interpreters, compilers and test runners may be missing or have another version; Docker sandboxes use the images`;
}
