import { type HomeOption, runningConfigOf } from '../stack/command.ts';
import type { FoundWorkflow, WorkflowKind } from './find-workflow.ts';

/** Finds an open workflow of one of these kinds and does something with it. */
export async function withWorkflow(
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
      throw new Error(`expected one of ${kinds.join(', ')}, got ${id}, which is a ${found.kind}`);
    }
    if (!isOpen(found)) {
      throw new Error(
        `expected a running ${found.kind}, but ${id} has ended (${found.description.status.name.toLowerCase()})`,
      );
    }
    await work(found);
  } finally {
    await stack.close();
  }
}
