import type { AgentSpec } from '../../infra/agents/agent.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { SandboxChoice } from '../../workflows/contracts/sandbox-kinds.ts';

/** Returns the kind of sandbox for an agent: one that does not run in every kind gets its first unless another was requested. */
export function sandboxChoice({ name, sandboxes }: AgentSpec, requested: SandboxChoice): SandboxChoice {
  if (sandboxes === undefined) return requested;
  if (requested === 'auto') return sandboxes[0] ?? requested;
  if (sandboxes.includes(requested)) return requested;
  const kinds = sandboxes.join(', ');
  throw new TemperFailure(
    'UnsupportedTask',
    `expected one of the sandboxes that agent ${name} runs in (${kinds}), got ${requested}; ask for one of these`,
  );
}
