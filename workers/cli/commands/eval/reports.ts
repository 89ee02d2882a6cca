import { compareSweeps } from '../../../../workflows/algorithms/compare-sweeps.ts';
import type { SweepReport } from '../../../../workflows/contracts/sweep.ts';
import { findWorkflow } from '../../follow/find-workflow.ts';
import { readSweepReport } from '../../follow/workflow-report.ts';
import { type HomeOption, runningConfigOf } from '../../stack/command.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { note, print, printJson } from '../../text/output.ts';
import { showSweep } from '../show/sweep.ts';
import { comparisonText } from './sweep-text.ts';

type ReportOptions = HomeOption & { readonly json?: true };

export const showSweepOf = (id: string, options: ReportOptions): Promise<void> =>
  onStack(options, async (stack) => {
    const found = await findWorkflow(stack.client, id);
    if (found.kind !== 'evaluationSweep') {
      throw new Error(`${id} is a ${found.kind}, not an evaluation sweep; see \`temper show ${id}\``);
    }
    await showSweep(stack, found, options.json === true);
  });

export const compareSweepsOf = (beforeId: string, afterId: string, options: ReportOptions): Promise<void> =>
  onStack(options, async (stack) => {
    const [before, after] = [await readSweepReport(stack, beforeId), await readSweepReport(stack, afterId)];
    const compared = compareSweeps(before.taskScores, after.taskScores);
    if (compared === null) {
      throw new Error(
        `the sweeps have no counted task in common: ${beforeId} evaluated ${before.input.tasks}, ${afterId} evaluated ${after.input.tasks}`,
      );
    }
    if (before.input.passAt !== after.input.passAt) {
      note(
        `the sweeps count different rewards as a pass: ${before.input.passAt} and above in the first, ${after.input.passAt} and above in the second`,
      );
    }
    if (options.json)
      printJson({ sweeps: [beforeId, afterId], agents: [agentOf(before), agentOf(after)], ...compared });
    else print(comparisonText(before, after, compared));
  });

const agentOf = ({ input: { settings } }: SweepReport) => ({
  agent: settings.agent,
  agentOptions: settings.agentOptions ?? {},
});

async function onStack(options: HomeOption, work: (stack: StackClient) => Promise<void>): Promise<void> {
  const { openStackClient } = await import('../../stack/stack-client.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    await work(stack);
  } finally {
    await stack.close();
  }
}
