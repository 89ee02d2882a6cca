import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { AgentSpec } from './agent.ts';
import { exits } from './mini/exits.ts';
import { instructionFile, variables } from './mini/main.ts';
import { tools } from './mini/tools.ts';
import { throughRelay } from './relay.ts';
import { programEntry, type Runtime } from './runtime.ts';

const stops: Readonly<Record<number, StopReason>> = {
  [exits.submitted]: 'submitted',
  [exits.exited]: 'exited',
  [exits.turnLimit]: 'turn-limit',
  [exits.contextOverflow]: 'context-overflow',
  [exits.tokenBudget]: 'token-budget',
};

/** temper's own small agent: a loop over `bash`, `edit` and `submit`. It needs nothing of the image but a shell. */
export function createMini({ runtime }: { readonly runtime: Runtime }): AgentSpec {
  return {
    name: 'mini',
    description: 'a small loop with bash, edit and submit tools',
    usesModel: true,
    needsSolution: false,
    runtimes: async () => [await runtime.prepare()],
    command({ instruction, workdir, baseUrl, secret, maxTurns }) {
      if (baseUrl === null || secret === null) throw new Error('mini: expected the address and secret of a gateway');
      return {
        argv: throughRelay(baseUrl, { module: programEntry('mini') }),
        env: {
          [variables.baseUrl]: baseUrl,
          [variables.secret]: secret,
          [variables.workdir]: workdir,
          [variables.maxTurns]: String(maxTurns),
          [variables.tools]: tools.map(({ name }) => name).join(','),
        },
        files: new Map([[instructionFile, { mode: 0o600, bytes: new TextEncoder().encode(instruction) }]]),
      };
    },
    stopReason: (exitCode) => stops[exitCode] ?? 'crashed',
  };
}
