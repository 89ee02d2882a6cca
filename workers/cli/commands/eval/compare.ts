import { compareSweeps } from '../../../../workflows/algorithms/compare-sweeps.ts';
import { type HomeOption, runningConfigOf } from '../../stack/command.ts';
import { note, print, printJson } from '../../text/output.ts';
import { readSweepReport } from './find-report.ts';
import { comparisonText } from './sweep-text.ts';

export async function compareSweepsOf(
  beforeId: string,
  afterId: string,
  options: HomeOption & { readonly json?: true },
): Promise<void> {
  const { openStackClient } = await import('../../stack/stack-client.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const [before, after] = [await readSweepReport(stack, beforeId), await readSweepReport(stack, afterId)];
    const compared = compareSweeps(before.taskScores, after.taskScores);
    if (compared === null) {
      throw new Error(
        `expected sweeps with a counted task in common, got ${beforeId} on ${before.input.tasks} and ${afterId} on ${after.input.tasks}`,
      );
    }
    if (before.input.passAt !== after.input.passAt) {
      note(
        `an attempt passes from ${before.input.passAt} on in the first and from ${after.input.passAt} on in the second`,
      );
    }
    if (options.json) printJson({ sweeps: [beforeId, afterId], ...compared });
    else print(comparisonText(before, after, compared));
  } finally {
    await stack.close();
  }
}
