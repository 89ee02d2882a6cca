import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { SandboxDescription } from '../sandbox.ts';
import { apiStatus, type Cluster } from './client.ts';
import { missingRights } from './rights.ts';

/** Describes what sandboxes in a namespace protect, and whether this account has the rights to make them. */
export async function describeCluster(namespace: string, open: () => Promise<Cluster>): Promise<SandboxDescription> {
  const common = { kind: 'kubernetes' as const, protects, doesNotProtect };
  try {
    const cluster = await open();
    const missing = await missingRights(cluster);
    const server = cluster.config.getCurrentCluster()?.server;
    const place = `namespace ${namespace} at ${server}`;
    if (missing.length === 0) return { ...common, ready: true, summary: place };
    const summary = `${place}: this account lacks the rights ${missing.join(', ')}; grant them with a Role`;
    return { ...common, ready: false, summary };
  } catch (error) {
    if (!(error instanceof TemperFailure) && apiStatus(error) === undefined) throw error;
    return { ...common, ready: false, mayComeUp: true, summary: errorMessage(error).slice(0, 500) };
  }
}

const protects = [
  "the node's files, processes and network",
  'other sandboxes',
  'hidden tests, claims, results and logs: the keeper, the grader and the agent are three uids without capabilities',
  'memory and CPU: limited by the kubelet',
];

const doesNotProtect = [
  'against kernel bugs: the kernel is shared, unless TEMPER_KUBERNETES_RUNTIME_CLASS names a runtime with its own',
  'network: where the cluster has no controller for NetworkPolicies',
  'the disk immediately: the quota is checked every two seconds, while the size of a single file is limited at once',
];
