import { generatedImage } from '../../../infra/tasks/generated/generate.ts';
import type { SandboxChoice } from '../../../workflows/contracts/sandbox-kinds.ts';

const namedImages = 3;

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
