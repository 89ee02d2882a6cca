import type { AgentSpec } from './agent.ts';

/** Does nothing: shows that a task isn't solved from the start, and what a rollout costs by itself. */
export function createNop(): AgentSpec {
  return {
    name: 'nop',
    description: 'does nothing',
    usesModel: false,
    needsSolution: false,
    runtimes: async () => [],
    command: () => ({ argv: ['true'], env: {}, files: new Map() }),
    stopReason: (exitCode) => (exitCode === 0 ? 'exited' : 'crashed'),
  };
}
