import { z } from 'zod';
import type { AgentSpec } from './agent.ts';
import { hostToolsUrl } from './host-tools.ts';
import { stopOfExit } from './mini.ts';
import { toolTimeout } from './options.ts';
import { throughRelay } from './relay.ts';
import { programEntry, type Runtime } from './runtime.ts';
import { ptyPrograms } from './terminal/pty.ts';
import { instructionFile, variables } from './terminal/settings.ts';

const options = {
  commands: z
    .enum(['text', 'tools'], { error: 'expected text or tools' })
    .default('text')
    .describe(
      "How the model is asked for commands: `text`, a JSON object as terminal-bench's agent reads it, or `tools`, by calls in the form of its chat template. The agent reads both forms in any case.",
    ),
  toolTimeoutSec: toolTimeout.describe('The longest wait after keystrokes in seconds. Default: 60.'),
} as const;

/** temper's own agent that types into a terminal. It needs a program of the image that can open one. */
export function createTerminal({ runtime }: { readonly runtime: Runtime }): AgentSpec<typeof options> {
  return {
    name: 'terminal',
    description: 'works by keystrokes in a terminal',
    usesModel: true,
    needsSolution: false,
    takesHostTools: true,
    programs: ptyPrograms,
    options,
    runtimes: async () => [await runtime.prepare()],
    command(context) {
      const { instruction, workdir, baseUrl, secret, maxTurns, options: chosen } = context;
      if (baseUrl === null || secret === null)
        throw new Error('terminal: expected the address and secret of a gateway');
      const hostTools = hostToolsUrl(baseUrl, context);
      return {
        argv: throughRelay(baseUrl, { module: programEntry('terminal') }),
        env: {
          [variables.baseUrl]: baseUrl,
          [variables.secret]: secret,
          [variables.workdir]: workdir,
          [variables.maxTurns]: String(maxTurns),
          [variables.commands]: chosen.commands,
          ...(hostTools !== null && { [variables.hostTools]: hostTools }),
          ...(chosen.toolTimeoutSec !== undefined && { [variables.longestWaitSec]: String(chosen.toolTimeoutSec) }),
        },
        files: new Map([[instructionFile, { mode: 0o600, bytes: new TextEncoder().encode(instruction) }]]),
      };
    },
    stopReason: stopOfExit,
  };
}
