import { findWorkflow } from '../../follow/find-workflow.ts';
import { type HomeOption, runningConfigOf } from '../../stack/command.ts';
import { showSweep } from '../show/sweep.ts';

export async function showSweepOf(id: string, options: HomeOption & { readonly json?: true }): Promise<void> {
  const { openStackClient } = await import('../../stack/stack-client.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const found = await findWorkflow(stack.client, id);
    if (found.kind !== 'evaluationSweep')
      throw new Error(`expected an evaluation sweep, got ${id}, which is a ${found.kind}; see \`temper show ${id}\``);
    await showSweep(stack, found, options.json === true);
  } finally {
    await stack.close();
  }
}
