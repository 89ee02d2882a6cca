import { after, before, beforeEach } from 'node:test';
import { bundleChanged } from './changed-workflows.ts';
import { type ScriptedStack, startScriptedStack } from './scripted-stack.ts';

/** Agents of one test that work until the test ends them. */
export interface HeldAgents {
  readonly server: ScriptedStack['server'];
  /** The number of agents that have begun in this test. */
  readonly begun: number;
  /** Ends all agents, also those that begin later. */
  end(): void;
}

/** Gives the tests of a suite a stack whose agents work until they are ended, with the windows of sweeps as `change` makes them. */
export function holdAgents(change: (module: string) => string): HeldAgents {
  let stack: ScriptedStack | undefined;
  let begun = 0;
  let ends = Promise.withResolvers<void>();
  const started = (): ScriptedStack => {
    if (stack === undefined) throw new Error('expected a stack, which starts before the first test');
    return stack;
  };
  before(async () => {
    const workflowBundle = await bundleChanged('sweep/windows.ts', change);
    stack = await startScriptedStack({ workflowBundle });
  });
  beforeEach(() => {
    begun = 0;
    ends = Promise.withResolvers();
    const { promise } = ends;
    const agent = (): Promise<void> => {
      begun += 1;
      return promise;
    };
    started().script = { reward: () => 1, agent };
  });
  after(() => stack?.close());
  return {
    get server() {
      return started().server;
    },
    get begun() {
      return begun;
    },
    end: () => ends.resolve(),
  };
}
