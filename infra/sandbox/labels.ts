/** Labels say whose a sandbox is; they fence a new attempt off from what an earlier one left under the same name. */
import { SandboxFailure } from './failure.ts';
import type { SandboxLabels } from './sandbox.ts';

/** Throws `SandboxConflict` unless both name the same attempt of the same rollout. */
export function sameAttempt(name: string, asked: SandboxLabels, found: SandboxLabels): void {
  const keys = ['stack', 'run', 'rollout', 'epoch', 'purpose'] as const;
  const differing = keys.filter((key) => asked[key] !== found[key]);
  if (differing.length === 0) return;
  const differences = differing.map((key) => `${key} ${asked[key]}, got ${found[key]}`).join('; expected ');
  throw new SandboxFailure(
    'SandboxConflict',
    `sandbox ${name} is another's: expected ${differences}; remove it or use another name`,
  );
}
