import { type HomeOption, runningConfigOf } from '../stack/command.ts';
import type { FoundWorkflow, WorkflowKind } from './find-workflow.ts';

/** Finds a workflow by its id and passes it to `work`. Throws if it does not exist, has ended, or is of another kind. */
export async function onOpenWorkflow(
  options: HomeOption,
  id: string,
  kinds: readonly WorkflowKind[],
  work: (found: FoundWorkflow) => Promise<void>,
): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const { findWorkflow, isOpen } = await import('./find-workflow.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const found = await findWorkflow(stack.client, id);
    if (!kinds.includes(found.kind)) {
      throw new Error(`${id} is a ${found.kind}; expected one of ${kinds.join(', ')}`);
    }
    if (!isOpen(found)) {
      const status = found.description.status.name.toLowerCase();
      throw new Error(`the ${found.kind} ${id} has already ended (${status}); see \`temper show ${id}\``);
    }
    await work(found);
  } finally {
    await stack.close();
  }
}
