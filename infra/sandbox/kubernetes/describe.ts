import { randomUUID } from 'node:crypto';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { LastingRefusal } from '../failure.ts';
import type { SandboxDescription, SandboxSpec } from '../sandbox.ts';
import { apiStatus, callApi, needsImageVolumes, unmade } from './answers.ts';
import type { Cluster } from './client.ts';
import { describePod } from './pod.ts';
import { missingRights, neededRights, progressRights } from './rights.ts';
import type { KubernetesSettings } from './settings.ts';

/** Describes what sandboxes in a namespace protect, and whether this account may make them there. */
export async function describeCluster(
  settings: KubernetesSettings,
  open: () => Promise<Cluster>,
): Promise<SandboxDescription> {
  const common = { kind: 'kubernetes' as const, protects, doesNotProtect };
  try {
    const cluster = await open();
    const missing = await missingRights(cluster, neededRights);
    const server = cluster.config.getCurrentCluster()?.server;
    const place = `namespace ${settings.namespace} at ${server}`;
    if (missing.length > 0) {
      const summary = `${place}: this account lacks the rights ${missing.join(', ')}; grant them with a Role, or correct TEMPER_KUBERNETES_NAMESPACE`;
      return { ...common, ready: false, summary };
    }
    await tryPod(cluster, settings);
    const unseen = await missingRights(cluster, progressRights);
    const note = unseen.length === 0 ? '' : `; without the right ${unseen.join(', ')} a pull shows no progress`;
    return { ...common, ready: true, summary: `${place}${note}` };
  } catch (error) {
    if (!(error instanceof TemperFailure) && apiStatus(error) === undefined) throw error;
    const summary = errorMessage(error).slice(0, 500);
    return {
      ...common,
      ready: false,
      summary,
      ...(!(error instanceof LastingRefusal) && { mayComeUp: true as const }),
    };
  }
}

/** Has the API server check a Pod that it does not make, as it would check a sandbox's: its level of Pod Security may forbid it. */
export async function tryPod(
  { core, namespace }: Cluster,
  settings: KubernetesSettings,
  further: Pick<SandboxSpec, 'root'> = {},
): Promise<void> {
  const name = `temper-check-${randomUUID().slice(0, 8)}`;
  const labels = { stack: 'check', run: 'check', rollout: name, epoch: 1, purpose: 'agent' } as const;
  const limits = { cpus: 1, memoryMb: 256, diskMb: 256, pids: 64 };
  const spec: SandboxSpec = {
    name,
    image: settings.programs,
    labels: { ...labels, expiresAtMs: Date.now() },
    ...limits,
    workdir: '/workspace',
    mounts: [],
    ...further,
  };
  const body = describePod(spec, settings);
  const tried = await callApi(namespace, () => core.createNamespacedPod({ namespace, body, dryRun: 'All' })).catch(
    (error: unknown) => {
      throw unmade(namespace, error);
    },
  );
  // An older server drops the field that it does not know, and would mount an empty directory.
  if (!tried.spec?.volumes?.some(({ image }) => image)) throw new LastingRefusal(needsImageVolumes);
}

const protects = [
  "the node's files, processes and network",
  'other sandboxes',
  'hidden tests, claims, results and logs: the keeper, the grader and the agent are three uids without capabilities',
  'memory and CPU: limited by the kubelet',
];

const doesNotProtect = [
  'against kernel bugs: the kernel is shared, unless TEMPER_KUBERNETES_RUNTIME_CLASS names a runtime with its own',
  'claims, results and logs of a task whose agent is root (`user`): it can end its sandbox, which is scored, or change them',
  'network: where the cluster has no controller for NetworkPolicies',
  'the disk immediately: the quota is checked every two seconds, while the size of a single file is limited at once',
];
