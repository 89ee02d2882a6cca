import type { SandboxNeeds, SandboxProvider, UnsupportedReason } from './sandbox.ts';

/** A need that a task may have, and that not every kind of sandbox meets. */
interface Need {
  /** Whether the kind's sandboxes have what the task needs, if it needs it at all. */
  isMet(provider: SandboxProvider, needs: SandboxNeeds): boolean;
  /** Says what the task needs, which kind lacks it, and what to do. */
  refusal(provider: SandboxProvider, needs: SandboxNeeds): string;
}

const root: Need = {
  isMet: ({ givesRoot }, needs) => givesRoot || needs.root !== true,
  refusal: ({ kind }, { task }) =>
    `the agent of task ${task} is to be root of its container (user = "root"), and ${kind} sandboxes have accounts without rights only; use Docker or Kubernetes`,
};

const gpus: Need = {
  isMet: ({ givesGpus = false }, needs) => givesGpus || (needs.gpus ?? 0) === 0,
  refusal: ({ kind }, { task, gpus }) =>
    `task ${task} needs GPUs (environment.gpus = ${gpus}), which ${kind} sandboxes do not have; use a host with Docker and GPUs`,
};

const services: Need = {
  isMet: ({ runsServices = false }, { services = [] }) => runsServices || services.length === 0,
  refusal: ({ kind }, { task, services = [] }) =>
    `task ${task} has services beside its container (${services.join(', ')}), which ${kind} sandboxes cannot run; use a host with Docker`,
};

const inMemory: Need = {
  isMet: ({ givesTmpfs = false }, { inMemory }) => givesTmpfs || inMemory === undefined,
  refusal: ({ kind }, { task, inMemory }) =>
    `task ${task} has directories in memory (${inMemory}), which ${kind} sandboxes do not have; use Docker or Kubernetes`,
};

const hosts: Need = {
  isMet: ({ givesHosts = false }, { hosts = [] }) => givesHosts || hosts.length === 0,
  refusal: ({ kind }, { task, hosts = [] }) =>
    `task ${task} names hosts (${hosts.join(', ')}), which ${kind} sandboxes cannot know; use Docker or Kubernetes`,
};

/** Returns how much of the time for waits for an engine a provider leaves; less than 0 if even a task without any is too long for it. */
export const waitingLeftMs = (
  { longestLifetimeMs = Number.POSITIVE_INFINITY }: Pick<SandboxProvider, 'longestLifetimeMs'>,
  { lifetimeMs = 0, waitingMs = 0 }: Pick<SandboxNeeds, 'lifetimeMs' | 'waitingMs'>,
): number => Math.min(waitingMs, longestLifetimeMs - lifetimeMs + waitingMs);

const lifetime: Need = {
  isMet: (provider, needs) => waitingLeftMs(provider, needs) >= 0,
  refusal: ({ kind, longestLifetimeMs = 0 }, { task, lifetimeMs = 0, waitingMs = 0 }) =>
    `task ${task} needs a sandbox for ${(lifetimeMs - waitingMs) / 1000} s (agent, tests and 900 s around them), but ${kind} sandboxes live for ` +
    `${longestLifetimeMs / 1000} s at most; lower agentTimeoutSec or evaluationTimeoutSec, or use another sandbox`,
};

/** The needs, in the order in which they are looked at: a task gets the reason of the first that is not met. */
const table: readonly Need[] = [root, gpus, services, inMemory, hosts, lifetime];

/** Returns the reason why no sandbox of this kind has what a task needs; undefined if nothing is missing. */
export function unmetNeed(provider: SandboxProvider, needs: SandboxNeeds): UnsupportedReason | undefined {
  const unmet = table.find(({ isMet }) => !isMet(provider, needs));
  return unmet && { type: 'UnsupportedTask', message: unmet.refusal(provider, needs) };
}
