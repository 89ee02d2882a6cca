import type { AgentSpec } from './agent.ts';

/** Runs the script of the solution. A task that is judged by an answer may have its reference answer alone. */
const solve = 'if [ -e /solution/solve.sh ] || [ ! -e /solution/answer.txt ]; then exec bash /solution/solve.sh; fi';

/** Applies the task's reference solution. Its rollouts show that a task can be solved and that the pipeline scores it. */
export function createOracle(): AgentSpec {
  return {
    name: 'oracle',
    description: "applies the task's reference solution",
    usesModel: false,
    needsSolution: true,
    runtimes: async () => [],
    command: () => ({ argv: ['bash', '-c', solve], env: {}, files: new Map() }),
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}
