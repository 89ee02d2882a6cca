import type { z } from 'zod';
import type { AgentCommand, AgentContext, AgentSpec } from '../agents/agent.ts';
import type { AgentKit, AgentModule } from '../agents/own-agents.ts';
import type { SandboxMount } from '../sandbox/mount.ts';

// `temper/agent`: what a module with an agent of your own is written with.

export { z } from 'zod';
export type { AgentCommand, AgentContext, AgentSpec, AgentStart } from '../agents/agent.ts';
export type { AgentKit, AgentModule } from '../agents/own-agents.ts';
export type { FileEntry, FileTree } from '../sandbox/file-tree.ts';
export type { SandboxMount } from '../sandbox/mount.ts';

/** The spec of an agent whose functions get the parts of temper that they need, and whose options have types. */
export interface AgentDefinition<Shape extends z.ZodRawShape>
  extends Omit<AgentSpec<Shape>, 'options' | 'runtimes' | 'command'> {
  readonly options: Shape;
  runtimes(kit: AgentKit): Promise<readonly SandboxMount[]>;
  command(context: AgentContext<z.output<z.ZodObject<Shape>>>, kit: AgentKit): AgentCommand;
}

/** Makes the default export of a module with an agent of your own. */
export function defineAgent<Shape extends z.ZodRawShape>(definition: AgentDefinition<Shape>): AgentModule {
  return (kit) => {
    const spec: AgentSpec<Shape> = {
      ...definition,
      runtimes: () => definition.runtimes(kit),
      command: (context) => definition.command(context, kit),
    };
    // temper gives the command the options as the spec's own schema has read them.
    return spec as unknown as AgentSpec;
  };
}
