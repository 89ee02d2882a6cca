import { Context } from '@temporalio/activity';
import type { AgentSpec } from '../../infra/agents/agent.ts';
import { createImageCheck } from '../../infra/agents/image-check.ts';
import { provisionAgent } from '../../infra/agents/provision.ts';
import { grantNetwork } from '../../infra/egress/grant-network.ts';
import type { EgressPlaces } from '../../infra/egress/places.ts';
import { createChannels } from '../../infra/gateway/channel/index.ts';
import { needOf } from '../../infra/machine/fit.ts';
import { mergeMounts } from '../../infra/sandbox/mount.ts';
import { prepareSandbox } from '../../infra/sandbox/prepare-image.ts';
import { removeEverywhere } from '../../infra/sandbox/providers.ts';
import type { SandboxKind, SandboxMount } from '../../infra/sandbox/sandbox.ts';
import type { SandboxRequest } from '../../infra/sandbox/sandbox-request.ts';
import { waitingLeftMs } from '../../infra/sandbox/unmet-need.ts';
import { withTimeLimit } from '../../infra/time-limit.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { agentSandboxName, type RolloutEpoch, sessionId } from '../../workflows/contracts/ids.ts';
import { isSweepPriority, shareOf } from '../../workflows/contracts/queues.ts';
import { provisionMs } from '../../workflows/contracts/stage-limits.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import { atBoundary, joinAtBoundary } from '../boundary.ts';
import type { CleanUpActivities, HostActivities } from '../interfaces/host.ts';
import { sandboxChoice } from './choice.ts';
import type { Host } from './host.ts';
import { channelAmong, networkMounts, policiesInSandbox } from './network.ts';
import { timed } from './timed.ts';

export function createProvisioning(host: Host): Pick<HostActivities, 'provisionSandbox'> {
  const requireOfImage = createImageCheck();
  const channels = createChannels(host.gatewaySockets);
  return {
    provisionSandbox: ({ epoch, run, task, agent, sandbox, ...times }) =>
      joinAtBoundary((signal, report) =>
        timed(report, async (report) => {
          const { info } = Context.current();
          const spec = host.agent(agent);
          grantNetwork(task, host.network.cap);
          const files = await host.tasks.open(task);
          const choice = sandboxChoice(spec, sandbox);
          const provider = await host.choose(choice, task, { filesInImage: files.workspace.size === 0, ...times });
          host.admission.expect(needOf(task, provider.kind));
          const preparing = { store: host.store, provider };
          const { image, beside } = await prepareSandbox(preparing, { task, files }, report, signal);
          const name = agentSandboxName(epoch);

          const provision = async (ending: AbortSignal) => {
            const expiresAtMs = Date.now() + times.lifetimeMs;
            const sweep = isSweepPriority(info.priority);
            const share = shareOf(info.priority);
            host.slots.take(epoch, { expiresAtMs, sweep, share });
            // A rollout that was reset to this stage gets a new agent.
            await host.results.remove(epoch);
            const channel = channelAmong(host, provider.channels);
            const isNetworked = policiesInSandbox(task).length > 0;
            const ofNetwork = isNetworked ? await networkMounts(host, name, channel) : [];
            const request: Omit<SandboxRequest, 'files'> = {
              name,
              epoch,
              run,
              task,
              image,
              beside,
              purpose: 'agent',
              sweep,
              share,
              expiresAtMs,
              mounts: mergeMounts(await mountsOf(host, spec, { kind: provider.kind, task }), ofNetwork),
              gatewayDir: spec.usesModel ? await channels[channel].gatewayDir(sessionId(epoch)) : null,
              ...((spec.usesModel || isNetworked) && { channel }),
            };
            const retried = info.attempt > 1;
            const provisioning = { owner: host, provider, spec, request, files, retried, requireOfImage, report };
            const waitingMs = waitingLeftMs(provider, times);
            const provisioned = await provisionAgent(provisioning, ending);
            const agentVersion = await versionOf(spec);
            return {
              ...provisioned,
              ...(agentVersion !== undefined && { agentVersion }),
              ...(waitingMs < times.waitingMs && { waitingMs }),
            };
          };
          const late = new TemperFailure(
            'SandboxUnavailable',
            `sandbox ${name} was not set up within ${provisionMs / 1000} s; it is set up again from the start`,
          );
          return withTimeLimit({ limitMs: provisionMs, late }, provision, signal);
        }),
      ),
  };
}

/** Returns the version of an agent's package, without the digest of its lockfile, or else its own. */
async function versionOf({ name, version, runtimes }: AgentSpec): Promise<string | undefined> {
  // A name may have options behind it.
  const [agent] = name.split('?');
  const program = (await runtimes()).find((mount) => mount.program?.name === agent)?.program;
  return program?.version.replace(/-[0-9a-f]{16}$/, '') ?? version;
}

/** Returns what an agent needs in its sandbox, and what its tests need if they run there. */
async function mountsOf(
  host: Host,
  spec: AgentSpec,
  { kind, task }: { readonly kind: SandboxKind; readonly task: Task },
): Promise<readonly SandboxMount[]> {
  const own = await spec.runtimes();
  if (task.gradedIn !== 'same') return own;
  return mergeMounts(own, await host.evaluationMounts(kind));
}

/** The parts of a host in which an agent's sandbox leaves something. */
interface Cleaned extends Pick<Host, 'providers' | 'slots'> {
  readonly network: { readonly places: Pick<EgressPlaces, 'remove'> };
}

export function createCleanUp(host: Cleaned): CleanUpActivities {
  return {
    releaseSandbox: ({ epoch }) => atBoundary(async () => ({ removed: await releaseAgentSandbox(host, epoch) })),
  };
}

/** Removes the agent's sandbox and releases its slot. Returns whether there was a sandbox. */
export async function releaseAgentSandbox(host: Cleaned, epoch: RolloutEpoch): Promise<boolean> {
  const name = agentSandboxName(epoch);
  try {
    const removed = await removeEverywhere(host.providers, name);
    await host.network.places.remove(name);
    host.slots.release(epoch);
    return removed;
  } catch (error) {
    // The slot is released even if an engine is unreachable: the reaper finds what it still runs, and counts it until then.
    host.slots.release(epoch, 'left');
    throw error;
  }
}
