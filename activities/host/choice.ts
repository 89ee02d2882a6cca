import type { AgentSpec } from '../../infra/agents/agent.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { SandboxChoice } from '../../workflows/contracts/rollout.ts';

/** An agent that runs in one kind alone gets it where none was named. */
export function choiceFor({ name, sandbox }: AgentSpec, asked: SandboxChoice): SandboxChoice {
  if (sandbox === undefined || asked === sandbox) return asked;
  if (asked === 'auto') return sandbox;
  throw new TemperFailure(
    'UnsupportedTask',
    `expected a ${sandbox} sandbox, the only kind that agent ${name} runs in, got ${asked}; ask for ${sandbox}`,
  );
}
