import type { HomeOption } from '../stack/command.ts';
import { onStack } from '../stack/on-stack.ts';
import type { FoundWorkflow, WorkflowKind } from './find-workflow.ts';

/** Finds a workflow by its id and passes it to `work`. Throws if it does not exist, has ended, or is of another kind. */
export async function onOpenWorkflow(
  options: HomeOption,
  id: string,
  kinds: readonly WorkflowKind[],
  work: (found: FoundWorkflow) => Promise<void>,
): Promise<void> {
  const { findWorkflow, isOpen } = await import('./find-workflow.ts');
  await onStack(options, async ({ client }) => {
    const found = await findWorkflow(client, id);
    if (!kinds.includes(found.kind)) {
      throw new Error(`${id} is a ${found.kind}; expected one of ${kinds.join(', ')}`);
    }
    if (!isOpen(found)) {
      const status = found.description.status.name.toLowerCase();
      throw new Error(`the ${found.kind} ${id} has already ended (${status}); see \`temper show ${id}\``);
    }
    await work(found);
  });
}
