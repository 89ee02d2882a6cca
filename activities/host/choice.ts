import type { AgentSpec } from '../../infra/agents/agent.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { SandboxChoice } from '../../workflows/contracts/sandbox-kinds.ts';

/** Returns the kind of sandbox for an agent: one that runs in a single kind gets it unless another was requested. */
export function sandboxChoice({ name, sandbox }: AgentSpec, requested: SandboxChoice): SandboxChoice {
  if (sandbox === undefined || requested === sandbox) return requested;
  if (requested === 'auto') return sandbox;
  throw new TemperFailure(
    'UnsupportedTask',
    `expected a ${sandbox} sandbox, the only kind that agent ${name} runs in, got ${requested}; ask for ${sandbox}`,
  );
}
