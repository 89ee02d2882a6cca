import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { packageVersion } from '../package-version.ts';
import type { Agent, AgentSpec } from './agent.ts';
import { createClaudeCode } from './claude-code.ts';
import { homeFiles, withInstruction } from './cli.ts';
import { createCodex } from './codex.ts';
import { createMini } from './mini.ts';
import { createNop } from './nop.ts';
import { createOpencode } from './opencode.ts';
import { type GivenOptions, withOptions } from './options.ts';
import { createOracle } from './oracle.ts';
import { type OwnAgent, ownSpecs } from './own-agents.ts';
import { createPackages } from './packages.ts';
import { createPi } from './pi.ts';
import { createRuntime, runScript } from './runtime.ts';
import { createTerminal } from './terminal.ts';

export interface Agents {
  readonly names: readonly string[];
  readonly specs: readonly AgentSpec[];
  /**
   * Finds an agent by name and applies options, which may be part of the name, too
   * (`claude-code?subAgents=off&window=40000`). An agent of a module may be named by its module. Throws TemperFailure
   * UnknownAgent, which lists the names or the options that there are.
   */
  get(name: string, options?: GivenOptions): Agent;
}

export interface AgentsDependencies {
  /** The directory where runtimes and packages are prepared, once per host. */
  readonly cacheDir: string;
  /** The user's own agents; see own-agents.ts. Default: none. */
  readonly own?: readonly OwnAgent[];
}

/** Creates the table of agents, one line each. */
export function createAgents({ cacheDir, own = [] }: AgentsDependencies): Agents {
  const runtime = createRuntime({ cacheDir });
  const packages = createPackages({ cacheDir });
  const siblings: readonly AgentSpec[] = [
    createMini({ runtime }),
    createTerminal({ runtime }),
    createClaudeCode({ runtime, packages }),
    createCodex({ runtime, packages }),
    createOpencode({ runtime, packages }),
    createPi({ runtime, packages }),
    createOracle(),
    createNop(),
  ].map((spec) => ({ version: packageVersion(), ...spec }));
  const kit = { z, runtime, withInstruction, homeFiles, runScript };
  const taken = siblings.map(({ name }) => name);
  const table = [...siblings, ...ownSpecs(own, kit, taken)];
  const byName = new Map(table.map((agent) => [agent.name, agent]));
  const names = [...byName.keys()];
  // An own agent also goes by its module, as the settings name it.
  for (const [index, { from }] of own.entries()) {
    const agent = table[siblings.length + index];
    if (agent !== undefined) byName.set(from, agent);
  }
  return {
    names,
    specs: table,
    get(asked, options = {}) {
      // Everything after the first question mark is the query, so that a mistake in it is rejected and not ignored.
      const [name = '', ...rest] = asked.split('?');
      const agent = byName.get(name);
      if (agent === undefined) {
        throw new TemperFailure(
          'UnknownAgent',
          `expected one of ${names.join(', ')}, got ${JSON.stringify(asked)}; name a module of your own in TEMPER_AGENTS of every process of the stack`,
        );
      }
      const inName = optionsOfQuery(rest.join('?'));
      const twice = Object.keys(inName).filter((option) => option in options);
      if (twice.length > 0) {
        throw new TemperFailure('UnknownAgent', `${asked}: ${twice.join(', ')} is in agentOptions, too; give it once`);
      }
      return { ...withOptions(agent, { ...inName, ...options }), name: asked };
    },
  };
}

/** Reads options from the query of a name. A value is JSON if it can be read as such, else a text. */
const optionsOfQuery = (query: string): GivenOptions =>
  Object.fromEntries([...new URLSearchParams(query)].map(([option, value]) => [option, jsonOrText(value)]));

function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
