import type { AgentSpec } from '../../infra/agents/agent.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

export interface AgentPlace {
  readonly sandbox: Sandbox;
  readonly provider: SandboxProvider;
  readonly spec: AgentSpec;
  /** What the sandbox is made of. */
  readonly image: string;
}

export type LoaderCheck = (place: AgentPlace, signal: AbortSignal) => Promise<void>;

/**
 * Looks for the loader of an agent's programs: one that can't start would end as one that crashed, and be scored. What an image
 * holds is asked once. Throws UnsupportedTask.
 */
export function createLoaderCheck(): LoaderCheck {
  const found = new Set<string>();
  return async ({ sandbox, provider, spec, image }, signal) => {
    if (spec.loader === undefined) return;
    const key = JSON.stringify([provider.kind, await provider.imageId(image), spec.loader]);
    if (found.has(key)) return;
    if (!(await holds(sandbox, spec.loader, signal))) {
      throw new TemperFailure(
        'UnsupportedTask',
        `agent ${spec.name} needs ${spec.loader}, and image ${image} has none; take an image with glibc (Debian, Ubuntu, Fedora) or another agent`,
      );
    }
    found.add(key);
  };
}

async function holds(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<boolean> {
  const argv = ['sh', '-c', 'test -e "$1"', 'sh', path] as const;
  const limits = { timeoutMs: 60_000, maxOutputBytes: 1024 };
  const { exitCode, timedOut } = await sandbox.exec({ account: 'agent', cwd: '/', env: {}, argv, ...limits }, signal);
  if (timedOut) throw new TemperFailure('SandboxUnavailable', `expected an answer about ${path} within a minute`);
  return exitCode === 0;
}
