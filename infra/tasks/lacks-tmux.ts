import { typedMark } from '../data-sets/formats/terminal-bench/typed-solution.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import type { FileEntry } from '../sandbox/files.ts';

/** Official images of systems and languages, none of which has tmux in any of its versions. */
const withoutTmux =
  /^(?:docker\.io\/)?(?:library\/)?(?:alpine|buildpack-deps|debian|gcc|golang|node|openjdk|perl|php|python|ruby|rust|ubuntu)(?:[:@]|$)/;
const longestFile = 256 * 1024;

/**
 * Whether a solution is typed into tmux although the task's image is known to lack it: an official image, or one that is built from
 * such images alone, with no word of tmux in the files of the build. Nothing is known of other images.
 */
export function lacksTmux({ solution, build, description: { image } }: HarborTask): boolean {
  const isTyped = [...solution.values()].some((entry) => textOf(entry).includes(typedMark));
  if (!isTyped) return false;
  if (build === null) return withoutTmux.test(image);
  const files = [...build.files.values()];
  if (!build.bases.every((base) => withoutTmux.test(base.image))) return false;
  return files.every((entry) => entry.bytes.byteLength <= longestFile && !textOf(entry).includes('tmux'));
}

const textOf = ({ bytes }: FileEntry): string => new TextDecoder().decode(bytes.subarray(0, longestFile));
