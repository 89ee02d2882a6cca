import { firstOfEach } from '../../../workflows/algorithms/flags.ts';
import type { Flag } from '../../../workflows/contracts/flags.ts';
import { patchParts } from '../patch-parts.ts';
import { matcher } from '../protection/patterns.ts';
import { type Protection, protectedPatterns } from '../protection/rules.ts';
import { flagsOfLines } from './of-lines.ts';
import { flagsOfPaths } from './of-paths.ts';
import { flagsOfRun, type SeenRun } from './of-run.ts';

/** What looks like a trick in a patch, and in the run of the tests over it; null: they did not run. Pure. */
export function flagsOfEvaluation(patch: Uint8Array, protection: Protection, run: SeenRun | null): readonly Flag[] {
  const parts = patchParts(patch);
  const isProtected = matcher(protectedPatterns(protection));
  // What a protected file says is not run.
  const open = parts.filter(({ names }) => !names.some(isProtected));
  return firstOfEach(
    (function* () {
      yield* flagsOfPaths(parts, protection);
      yield* flagsOfLines(open);
      if (run !== null) yield* flagsOfRun(run);
    })(),
  );
}
