import type { z } from 'zod';
import type { HostTool } from '../gateway/tools/host-tool.ts';

// `temper/host-tool`: what a module with host tools of your own is written with.

export { z } from 'zod';
export type { HostCall } from '../../workflows/contracts/host-tools.ts';
export type { HostTool, HostToolContext, HostToolReply } from '../gateway/tools/host-tool.ts';
export type { HostToolModule } from '../gateway/tools/own-tools.ts';

/** Makes a host tool whose arguments have types. A module exports one by default, or a list of them. */
export const defineHostTool = <Shape extends z.ZodRawShape>(tool: HostTool<Shape>): HostTool =>
  // temper calls the tool with the arguments as its own schema has read them.
  tool as unknown as HostTool;
