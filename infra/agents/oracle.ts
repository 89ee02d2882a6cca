import type { AgentSpec } from './agent.ts';

/** Applies the task's reference solution. Its rollouts show that a task can be solved and that the pipeline scores it. */
export function createOracle(): AgentSpec {
  return {
    name: 'oracle',
    description: "applies the task's reference solution",
    usesModel: false,
    needsSolution: true,
    runtimes: async () => [],
    command: () => ({ argv: ['bash', '/solution/solve.sh'], env: {}, files: new Map() }),
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}
