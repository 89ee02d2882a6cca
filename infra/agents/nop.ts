import type { AgentSpec } from './agent.ts';

/** Does nothing. Its rollouts show that a task is not already solved, and what a rollout costs without an agent. */
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
