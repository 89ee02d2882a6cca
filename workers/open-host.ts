import { createAdmission } from '../activities/host/admission.ts';
import { createFailingKinds } from '../activities/host/failing-kinds.ts';
import type { Host } from '../activities/host/host.ts';
import { createIntake } from '../activities/host/intake.ts';
import { createSlots } from '../activities/host/slots.ts';
import { createAgents } from '../infra/agents/index.ts';
import { loadOwnAgents } from '../infra/agents/own-agents.ts';
import { createRuntime, runtimeTarget } from '../infra/agents/runtime.ts';
import { createPublicNetwork } from '../infra/egress/network.ts';
import { createEgressPlaces } from '../infra/egress/places.ts';
import type { GatewayControl } from '../infra/gateway/control.ts';
import { secretsOf } from '../infra/gateway/secret.ts';
import { createKnownRuns } from '../infra/grading/evidence/known-runs.ts';
import { createVerdictCache } from '../infra/grading/verdict-cache.ts';
import type { Lease } from '../infra/hosts/lease.ts';
import { createOffers } from '../infra/hosts/offers.ts';
import { createBuildProxies } from '../infra/images/build-proxy.ts';
import { needOf, usualTask } from '../infra/machine/fit.ts';
import { isDiskFull } from '../infra/machine/level.ts';
import { readLevels } from '../infra/machine/read-levels.ts';
import { rolloutDirectories } from '../infra/machine/rollouts-that-fit.ts';
import { createHelperSpawner } from '../infra/process/spawner/through-helper.ts';
import { blobGraceMs } from '../infra/retention/category.ts';
import type { LimitReport } from '../infra/sandbox/docker/dropped-limits.ts';
import { createKeptResults } from '../infra/sandbox/kept-results.ts';
import { hasImage, openProviders } from '../infra/sandbox/providers.ts';
import type { Config } from '../infra/settings/config.ts';
import { openStackKeys } from '../infra/stack.ts';
import { createTasks } from '../infra/tasks/tasks.ts';
import { TemperFailure } from '../workflows/contracts/failures.ts';
import type { StackState } from './open-state.ts';

/** PATH of commands in a local sandbox. temper's own Node comes first, because the host's may be anywhere. */
const localPath = `${runtimeTarget}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;

/** Lets stages ask whether this host may still act as the one that it was when they began. */
function actingBy(lease: Pick<Lease, 'now' | 'valid'>): Pick<Host, 'acts' | 'mayAct'> {
  const acts = (held: string | null): boolean => {
    const { state, token } = lease.now();
    return state === 'valid' && token === held;
  };
  return {
    acts,
    async mayAct(held, signal) {
      await lease.valid(signal);
      if (!acts(held)) throw new TemperFailure('HostFenced', `this host no longer is ${held}, which was declared lost`);
    },
  };
}

const openTasks = ({ taskRoots, cacheDir, taskVariables }: Config, store: StackState['blobs']): Host['tasks'] =>
  createTasks({ store, roots: taskRoots, dataSets: { directory: cacheDir, offline: true }, variables: taskVariables });

/** Opens what this machine offers to rollouts. The caller closes its admission and its providers. */
export async function openHost(
  config: Config,
  { blobs, objects, stack, verdicts, hosts }: StackState,
  lease: Pick<Lease, 'now' | 'valid'>,
  { gateway, limits }: { readonly gateway: Pick<GatewayControl, 'status'>; readonly limits?: LimitReport },
): Promise<Host> {
  const stackKeys = await openStackKeys(config, objects);
  const agents = createAgents({ cacheDir: config.cacheDir, own: await loadOwnAgents(config.agents) });
  const runtime = createRuntime({ cacheDir: config.cacheDir });
  const network = {
    cap: config.network,
    outside: createPublicNetwork(),
    places: createEgressPlaces(config.paths.egress),
    runtime: runtime.prepare,
  };
  const fence = (): string | null => lease.now().token;
  const failing = createFailingKinds();
  const providers = await openProviders({
    stack,
    fence,
    onFailing: failing.note,
    root: config.paths.sandboxes,
    docker: { ...config.docker, ...(limits && { onDroppedLimits: limits.onDroppedLimits }) },
    e2b: config.e2b,
    kubernetes: config.kubernetes,
    images: config.paths.images,
    accounts: { directory: config.dockerConfigDir, env: config.env },
    buildProxy: createBuildProxies(network),
    preferred: config.sandbox,
    spawner: createHelperSpawner(),
  });
  const admission = createAdmission({
    need: needOf(usualTask, config.sandbox),
    readLevels: () => readLevels({ directories: rolloutDirectories(config) }),
  });
  const intake = createIntake();
  return {
    name: config.host,
    stack,
    fence,
    ...actingBy(lease),
    sharesJournals: config.sharedJournals !== null,
    store: blobs,
    verdicts: createVerdictCache({ records: verdicts, store: blobs }),
    knownRuns: createKnownRuns(),
    isDiskFull: () => isDiskFull(readLevels({ directories: rolloutDirectories(config) })),
    admission,
    intake,
    failing,
    slots: createSlots(config.capacity, { admission, intake }),
    // Half of the grace, so that a pass of retention sees the reference of a rollout that has just used one.
    results: createKeptResults(config.paths.results, blobGraceMs / 2),
    tasks: openTasks(config, blobs),
    providers,
    choose: providers.choose,
    isOfferedElsewhere: createOffers(hosts, config.host),
    hasImage: async (image) => hasImage(await providers.seen(), image),
    agent: agents.get,
    sessions: gateway,
    gatewaySockets: config.paths.gatewaySockets,
    channel: config.channel,
    network,
    holdMs: config.hostHoldMs,
    snapshotBytes: config.snapshotMb * 2 ** 20,
    secretsOf: (session) => secretsOf(stackKeys, session),
    pathOf: (kind) => (kind === 'local' ? localPath : null),
    evaluationMounts: async (kind) => (kind === 'local' ? [await runtime.prepare()] : []),
  };
}
