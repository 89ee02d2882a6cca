import { SandboxFailure } from './failure.ts';
import type { SandboxLabels } from './sandbox.ts';

/**
 * Throws `SandboxConflict` unless both labels name the same rollout and epoch, so that a new epoch never gets a sandbox that an
 * earlier one left under the same name.
 */
export function requireSameEpoch(name: string, asked: SandboxLabels, found: SandboxLabels): void {
  const keys = ['stack', 'run', 'rollout', 'epoch', 'purpose'] as const;
  const differing = keys.filter((key) => asked[key] !== found[key]);
  if (differing.length === 0) return;
  const differences = differing.map((key) => `${key} ${asked[key]}, got ${found[key]}`).join('; expected ');
  throw new SandboxFailure(
    'SandboxConflict',
    `sandbox ${name} belongs to another rollout: expected ${differences}; remove it or use another name`,
  );
}
