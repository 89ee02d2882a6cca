import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { AgentSpec } from './agent.ts';
import { createClaudeCode } from './claude-code.ts';
import { createCodex } from './codex.ts';
import { createMini } from './mini.ts';
import { createNop } from './nop.ts';
import { createOpencode } from './opencode.ts';
import { createOracle } from './oracle.ts';
import { createPackages } from './packages.ts';
import { createPi } from './pi.ts';
import { createRuntime } from './runtime.ts';

export interface Agents {
  readonly names: readonly string[];
  /**
   * Finds an agent by name, optionally with options (`claude-code?subAgents=off&window=40000`). Throws TemperFailure
   * UnknownAgent, which lists the names there are.
   */
  get(name: string): AgentSpec;
}

export interface AgentsDependencies {
  /** The directory where runtimes and packages are prepared, once per host. */
  readonly cacheDir: string;
}

/** Creates the table of agents, one line each. */
export function createAgents({ cacheDir }: AgentsDependencies): Agents {
  const runtime = createRuntime({ cacheDir });
  const packages = createPackages({ cacheDir });
  const table: readonly AgentSpec[] = [
    createMini({ runtime }),
    createClaudeCode({ runtime, packages }),
    createCodex({ runtime, packages }),
    createOpencode({ runtime, packages }),
    createPi({ runtime, packages }),
    createOracle(),
    createNop(),
  ];
  const byName = new Map(table.map((agent) => [agent.name, agent]));
  const names = [...byName.keys()];
  return {
    names,
    get(asked) {
      // Everything after the first question mark is the query, so that a mistake in it is rejected and not ignored.
      const [name = '', ...rest] = asked.split('?');
      const query = rest.length === 0 ? undefined : rest.join('?');
      const agent = byName.get(name);
      if (agent === undefined) {
        throw new TemperFailure('UnknownAgent', `expected one of ${names.join(', ')}, got ${JSON.stringify(asked)}`);
      }
      if (query === undefined) return agent;
      if (agent.withOptions === undefined) {
        throw new TemperFailure('UnknownAgent', `expected ${name} without options, got ${JSON.stringify(asked)}`);
      }
      return { ...agent.withOptions(Object.fromEntries(new URLSearchParams(query))), name: asked };
    },
  };
}
