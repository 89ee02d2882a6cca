import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { byImage } from '../sandbox/image-environment.ts';
import type { Sandbox, SandboxProvider } from '../sandbox/sandbox.ts';
import type { AgentSpec } from './agent.ts';

export interface AgentSandbox {
  readonly sandbox: Sandbox;
  readonly provider: SandboxProvider;
  readonly spec: AgentSpec;
  /** The image that the sandbox is made from. */
  readonly image: string;
}

/** Throws UnsupportedTask if the image lacks what the agent needs of it. */
export type ImageCheck = (agent: AgentSandbox, signal: AbortSignal) => Promise<void>;

/** A command that succeeds if the image has what an agent needs, and what to say if it fails. */
interface Need {
  readonly argv: readonly [string, ...string[]];
  readonly message: (image: string) => string;
}

/**
 * Returns a check for the loader of an agent's programs and for programs of the image that it starts: without them the agent
 * could not work, and the rollout would be scored as one whose agent crashed. Each image is inspected once.
 */
export function createImageCheck(): ImageCheck {
  const found = new Set<string>();
  return async ({ sandbox, provider, spec, image }, signal) => {
    for (const { argv, message } of needsOf(spec)) {
      const key = JSON.stringify([provider.kind, await provider.imageId(image), argv]);
      if (found.has(key)) continue;
      if (!(await succeeds(sandbox, argv, signal))) throw new TemperFailure('UnsupportedTask', message(image));
      found.add(key);
    }
  };
}

function needsOf({ name, loader, programs = [] }: AgentSpec): readonly Need[] {
  const needs: Need[] = [];
  if (loader !== undefined) {
    needs.push({
      argv: ['sh', '-c', 'test -e "$1"', 'sh', loader],
      message: (image) =>
        `agent ${name} needs ${loader}, and image ${image} has none; take an image with glibc (Debian, Ubuntu, Fedora) or another agent`,
    });
  }
  if (programs.length > 0) {
    needs.push({
      argv: ['sh', '-c', 'for one; do command -v "$one" >/dev/null && exit 0; done; exit 1', 'sh', ...programs],
      message: (image) =>
        `agent ${name} needs ${programs.join(' or ')} in the image, and image ${image} lacks all of them; install one of them in the image or take another agent`,
    });
  }
  return needs;
}

async function succeeds(sandbox: Sandbox, argv: Need['argv'], signal: AbortSignal): Promise<boolean> {
  const { exitCode, timedOut } = await sandbox.exec(
    { account: 'agent', cwd: '/', env: {}, ...byImage(argv), timeoutMs: 60_000, maxOutputBytes: 1024 },
    signal,
  );
  if (timedOut) {
    throw new TemperFailure(
      'SandboxUnavailable',
      `could not find out within 60 s whether sandbox ${sandbox.name} has ${argv.slice(4).join(' or ')}; the sandbox is provisioned again`,
    );
  }
  return exitCode === 0;
}
