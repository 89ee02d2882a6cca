import { firstOfEach } from '../../../workflows/algorithms/flags.ts';
import type { Flag } from '../../../workflows/contracts/flags.ts';
import { patchParts } from '../patch/patch-parts.ts';
import { matcher } from '../protection/patterns.ts';
import { type Protection, protectedPatterns } from '../protection/rules.ts';
import { flagAddedLines } from './added-lines.ts';
import { flagChangedPaths } from './changed-paths.ts';
import { flagTestRun, type InspectedRun } from './test-run.ts';

/** Flags suspected tricks in a patch, and in the run of the tests over it; null if no tests ran. Pure. */
export function flagEvaluation(patch: Uint8Array, protection: Protection, run: InspectedRun | null): readonly Flag[] {
  const parts = patchParts(patch);
  const isProtected = matcher(protectedPatterns(protection));
  // Changes of protected files are never executed.
  const open = parts.filter(({ names }) => !names.some(isProtected));
  return firstOfEach(
    (function* () {
      yield* flagChangedPaths(parts, protection);
      yield* flagAddedLines(open);
      if (run !== null) yield* flagTestRun(run);
    })(),
  );
}
