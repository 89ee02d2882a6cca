import type { Agents } from '../../infra/agents/index.ts';
import type { Network } from '../../infra/egress/network.ts';
import type { EgressPlaces } from '../../infra/egress/places.ts';
import type { GatewayControl } from '../../infra/gateway/control.ts';
import type { GatewaySockets } from '../../infra/gateway/sockets.ts';
import type { KnownRuns } from '../../infra/grading/evidence/known-runs.ts';
import type { VerdictCache } from '../../infra/grading/verdict-cache.ts';
import { isOfEarlierLife } from '../../infra/hosts/token.ts';
import type { KeptResults } from '../../infra/sandbox/kept-results.ts';
import type { Providers } from '../../infra/sandbox/providers.ts';
import type { ChannelKind, Sandbox, SandboxKind, SandboxMount } from '../../infra/sandbox/sandbox.ts';
import type { Store } from '../../infra/store/store.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { agentSandboxName, type RolloutEpoch } from '../../workflows/contracts/ids.ts';
import type { NetworkMode } from '../../workflows/contracts/network.ts';
import type { AgentEnd } from '../interfaces/host.ts';
import type { Admission } from './admission.ts';
import type { FailingKinds } from './failing-kinds.ts';
import type { Intake } from './intake.ts';
import type { Slots } from './slots.ts';

/** The parts of a host by which sandboxes get a network. */
export interface HostNetwork {
  /** The network that tasks may have here at most. */
  readonly cap: NetworkMode;
  /** The network beyond the proxy. */
  readonly outside: Network;
  readonly places: EgressPlaces;
  /** Prepares temper's own programs, of which the relay is one. */
  runtime(): Promise<SandboxMount>;
}

/** The parts of a host that its activities use. */
export interface Host {
  readonly name: string;
  readonly stack: string;
  /** Returns the fencing token of this host; null before it has claimed its name. */
  fence(): string | null;
  /** Resolves when this host may act under a token that it held. Rejects with HostFenced once it may not any more. */
  mayAct(token: string | null, signal: AbortSignal): Promise<void>;
  /** Whether it may act under that token right now. */
  acts(token: string | null): boolean;
  /** Whether another host may adopt this one's sandboxes that outlive it. */
  readonly sharesJournals: boolean;
  readonly store: Store;
  readonly verdicts: VerdictCache;
  /** The results of tests without an agent's work. */
  readonly knownRuns: KnownRuns;
  /** Whether the disk of the sandboxes on this host is full. */
  isDiskFull(): boolean;
  readonly tasks: Tasks;
  readonly slots: Slots;
  /** The results of agents whose sandboxes were removed by the activity that awaited them. */
  readonly results: KeptResults<AgentEnd>;
  readonly admission: Admission;
  readonly intake: Intake;
  /** The reasons why kinds of sandboxes fail that the host has asked for one. */
  readonly failing: FailingKinds;
  readonly providers: Pick<Providers, 'all' | 'seen'>;
  /** Returns the provider for a choice and a task; throws a failure that names what this host lacks. */
  readonly choose: Providers['choose'];
  /** Whether another host offers a kind of sandbox. */
  isOfferedElsewhere(kind: SandboxKind): Promise<boolean>;
  /** Whether this host has an image, or needs none. */
  hasImage(image: string): Promise<boolean>;
  readonly agent: Agents['get'];
  /** The sessions at this host's gateways. */
  readonly sessions: Pick<GatewayControl, 'status'>;
  /** The directories of the gateways' sockets. */
  readonly gatewaySockets: Pick<GatewaySockets, 'sessions' | 'agents'>;
  /** The way of model calls from new sandboxes whose kind has a choice. */
  readonly channel: ChannelKind;
  readonly network: HostNetwork;
  /** The time for which a relay holds its agent's model calls while no host carries them. */
  readonly holdMs: number;
  /** The limit of all files that an agent changed, for tests that get them. */
  readonly snapshotBytes: number;
  /**
   * Derives the secrets of a gateway session here, so that none of them travels. Agents are started with the first; one that was
   * started before a change of the stack's key has another.
   */
  secretsOf(session: string): readonly [string, ...string[]];
  /** Runtimes that the tests need and the image lacks. */
  evaluationMounts(kind: SandboxKind): Promise<readonly SandboxMount[]>;
  /** PATH for commands in a sandbox of this kind; null keeps the sandbox's own. */
  pathOf(kind: SandboxKind): string | null;
}

/** Returns the key of the agent's process in its sandbox. Each step of a task that has several has an agent of its own. */
export const agentKeyOf = (step: number | undefined): string => (step === undefined ? 'agent' : `agent-${step}`);

/** The sandbox of a stage. */
export interface AgentSandbox {
  readonly epoch: RolloutEpoch;
  readonly kind: SandboxKind;
  /** The fencing token under which this host has adopted it; absent if it made it. */
  readonly adoptedAs?: string | undefined;
}

/**
 * Returns the agent's sandbox as an earlier stage left it. Throws SandboxLost rather than making an empty one, and HostLost if this
 * host had it in an earlier life: its session is void.
 */
export async function attachAgentSandbox(
  host: Pick<Host, 'name' | 'providers' | 'fence' | 'slots'>,
  { epoch, kind, adoptedAs }: AgentSandbox,
): Promise<Sandbox> {
  const name = agentSandboxName(epoch);
  const sandbox = await host.providers.all.get(kind)?.attach(name);
  if (sandbox !== undefined) {
    const holder = adoptedAs ?? sandbox.labels.fence;
    if (holder === undefined || !isOfEarlierLife(holder, host.fence())) {
      // A worker that was started again knows its own sandboxes by their labels, and one that it had adopted by this stage.
      if (adoptedAs !== undefined) takeSlot(host, epoch, sandbox);
      return sandbox;
    }
    throw new TemperFailure('HostLost', `sandbox ${name} is void here: its host was declared lost as ${holder}`);
  }
  throw new TemperFailure(
    'SandboxLost',
    `sandbox ${name} no longer exists on host ${host.name}: it was removed from outside; the rollout continues in a new one`,
  );
}

/** Takes the slot of an agent's sandbox that runs, even if none is free. Repeatable. */
export function takeSlot(host: Pick<Host, 'slots'>, epoch: RolloutEpoch, { labels }: Pick<Sandbox, 'labels'>): void {
  const { expiresAtMs, sweep = false, share } = labels;
  host.slots.take(epoch, { expiresAtMs, sweep, share });
}
