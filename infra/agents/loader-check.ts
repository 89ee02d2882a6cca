import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Sandbox, SandboxProvider } from '../sandbox/sandbox.ts';
import type { AgentSpec } from './agent.ts';

export interface AgentSandbox {
  readonly sandbox: Sandbox;
  readonly provider: SandboxProvider;
  readonly spec: AgentSpec;
  /** The image that the sandbox is made from. */
  readonly image: string;
}

/** Throws UnsupportedTask if the image lacks the loader that the agent's programs need. */
export type LoaderCheck = (agent: AgentSandbox, signal: AbortSignal) => Promise<void>;

/**
 * Returns a check for the loader of an agent's programs: without it they could not start, and the rollout would be scored as
 * one whose agent crashed. Each image is inspected once.
 */
export function createLoaderCheck(): LoaderCheck {
  const found = new Set<string>();
  return async ({ sandbox, provider, spec, image }, signal) => {
    if (spec.loader === undefined) return;
    const key = JSON.stringify([provider.kind, await provider.imageId(image), spec.loader]);
    if (found.has(key)) return;
    if (!(await exists(sandbox, spec.loader, signal))) {
      throw new TemperFailure(
        'UnsupportedTask',
        `agent ${spec.name} needs ${spec.loader}, and image ${image} has none; take an image with glibc (Debian, Ubuntu, Fedora) or another agent`,
      );
    }
    found.add(key);
  };
}

async function exists(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<boolean> {
  const { exitCode, timedOut } = await sandbox.exec(
    {
      account: 'agent',
      cwd: '/',
      env: {},
      argv: ['sh', '-c', 'test -e "$1"', 'sh', path],
      timeoutMs: 60_000,
      maxOutputBytes: 1024,
    },
    signal,
  );
  if (timedOut) {
    throw new TemperFailure(
      'SandboxUnavailable',
      `could not find out within 60 s whether ${path} exists in sandbox ${sandbox.name}; the sandbox is provisioned again`,
    );
  }
  return exitCode === 0;
}
