import { z } from 'zod';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { AgentSpec } from './agent.ts';
import { hostToolsUrl } from './host-tools.ts';
import { exits } from './mini/exits.ts';
import { instructionFile, variables } from './mini/main.ts';
import { tools } from './mini/tools.ts';
import { toolTimeout } from './options.ts';
import { throughRelay } from './relay.ts';
import { programEntry, type Runtime } from './runtime.ts';

const stops: Readonly<Record<number, StopReason>> = {
  [exits.submitted]: 'submitted',
  [exits.exited]: 'exited',
  [exits.turnLimit]: 'turn-limit',
  [exits.contextOverflow]: 'context-overflow',
  [exits.tokenBudget]: 'token-budget',
};

/** The reason why one of temper's own agents stopped. */
export const stopOfExit = (exitCode: number): StopReason => stops[exitCode] ?? 'crashed';

const [firstTool = 'submit', ...otherTools] = tools.map(({ name }) => name);
const toolName = z.enum([firstTool, ...otherTools], {
  error: `expected one of ${[firstTool, ...otherTools].join(', ')}`,
});

const options = {
  tools: z
    .array(toolName, { error: 'expected a list of the names of tools' })
    .min(1, { error: 'expected at least one tool' })
    .default([firstTool, ...otherTools])
    .describe('The tools that it has.'),
  toolTimeoutSec: toolTimeout.describe('Time limit of a shell command in seconds. Default: 60.'),
} as const;

/** temper's own small agent: a loop over `bash`, `edit` and `submit`. It needs nothing of the image but a shell. */
export function createMini({ runtime }: { readonly runtime: Runtime }): AgentSpec<typeof options> {
  return {
    name: 'mini',
    description: 'a small loop with bash, edit and submit tools',
    usesModel: true,
    needsSolution: false,
    takesHostTools: true,
    options,
    runtimes: async () => [await runtime.prepare()],
    command(context) {
      const { instruction, workdir, baseUrl, secret, maxTurns, options: chosen } = context;
      if (baseUrl === null || secret === null) throw new Error('mini: expected the address and secret of a gateway');
      const hostTools = hostToolsUrl(baseUrl, context);
      return {
        argv: throughRelay(baseUrl, { module: programEntry('mini') }),
        env: {
          [variables.baseUrl]: baseUrl,
          [variables.secret]: secret,
          [variables.workdir]: workdir,
          [variables.maxTurns]: String(maxTurns),
          [variables.tools]: chosen.tools.join(','),
          ...(hostTools !== null && { [variables.hostTools]: hostTools }),
          ...(chosen.toolTimeoutSec !== undefined && { [variables.toolTimeoutSec]: String(chosen.toolTimeoutSec) }),
        },
        files: new Map([[instructionFile, { mode: 0o600, bytes: new TextEncoder().encode(instruction) }]]),
      };
    },
    stopReason: stopOfExit,
  };
}
