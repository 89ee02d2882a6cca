import type { V1Pod } from '@kubernetes/client-node';
import { SandboxFailure } from '../failure.ts';
import { labelsOf, requireSameEpoch, storedSpecOf } from '../labels.ts';
import { createLimiter } from '../limiter.ts';
import type {
  Sandbox,
  SandboxInfo,
  SandboxNeeds,
  SandboxOrder,
  SandboxProvider,
  SandboxSpec,
  UnsupportedReason,
} from '../sandbox.ts';
import { createReports } from '../shell/reports.ts';
import { createShellSandbox } from '../shell/sandbox.ts';
import { apiStatus, callApi, orIfMissing, unmade } from './answers.ts';
import { type AwaitedPod, type RemovalTimes, untilGone, untilRunning } from './await-pod.ts';
import { createCarriedChanges } from './carried-changes.ts';
import { type Cluster, openCluster } from './client.ts';
import { type Connections, createConnections } from './connections.ts';
import { describeCluster } from './describe.ts';
import { foreignPod, justRemoved, lossOf } from './explain.ts';
import { findBlock } from './find-block.ts';
import { describePod, infoOf, isPodHost, labelValue, podName, sandboxName, stackLabel } from './pod.ts';
import { createPodChanges, type FollowedPod, type PodChanges } from './pod-changes.ts';
import { createPodProgress } from './pod-progress.ts';
import { ensureNoNetwork } from './rights.ts';
import { createRootCheck } from './root-check.ts';
import { defaultKubernetesSettings, type KubernetesOptions, type KubernetesSettings } from './settings.ts';
import { createPodShell } from './shell.ts';
import { memoryPaths } from './volumes.ts';

export interface KubernetesProviderOptions extends KubernetesOptions {
  readonly stack: string;
  /** Returns the fencing token that this host holds. Default: it has none. */
  readonly fence?: () => string | null;
}

const pageSize = 500;

/**
 * Creates sandboxes as Pods of one namespace: a separate uid for the agent, no network, and limits enforced by the kubelet. One
 * connection for each Pod carries all that this process does in it.
 */
export function createKubernetesProvider({
  stack,
  fence = () => null,
  ...given
}: KubernetesProviderOptions): SandboxProvider {
  return new KubernetesProvider(stack, { ...defaultKubernetesSettings, ...given }, fence);
}

class KubernetesProvider implements SandboxProvider {
  readonly kind = 'kubernetes';
  readonly programs = 'image';
  readonly sharesProcesses = true;
  readonly givesRoot = true;
  readonly givesTmpfs = true;
  readonly givesHosts = true;
  readonly carriesChanges = true;
  readonly channels = ['stream'] as const;
  readonly #stack: string;
  readonly #settings: KubernetesSettings;
  readonly #fence: () => string | null;
  readonly #reports = createReports();
  readonly #creations;
  readonly #changes: PodChanges;
  readonly #progressOf: ReturnType<typeof createPodProgress>;
  readonly #refusedRoot: (task: string) => Promise<UnsupportedReason | undefined>;
  readonly #connections: Connections;
  /** The sandboxes that what runs in them has made unusable, by the uid of their Pod. They stay lost, even if they answer again. */
  readonly #blocked = new Map<string, SandboxFailure>();
  /** The images' content that nodes have reported, by name. */
  readonly #contents = new Map<string, string>();
  readonly #removals: RemovalTimes = new Map();
  #cluster: Promise<Cluster> | undefined;
  #preparing: Promise<void> | undefined;

  constructor(stack: string, settings: KubernetesSettings, fence: () => string | null) {
    this.#stack = stack;
    this.#fence = fence;
    this.#settings = settings;
    this.#creations = createLimiter(settings.creates);
    this.#changes = createPodChanges(() => this.#open());
    this.#connections = createConnections(() => this.#open());
    this.#progressOf = createPodProgress(() => this.#open());
    this.#refusedRoot = createRootCheck(settings, () => this.#open());
  }

  /** The node of a Pod gets its image; nothing is pulled or built here. */
  prepare: SandboxProvider['prepare'] = async ({ task, image, source }) => {
    if (typeof source === 'string') return image;
    throw new SandboxFailure('UnsupportedTask', dockerfileRefusal(task));
  };

  imageId = async (image: string): Promise<string> => this.#contents.get(image) ?? image;

  evictImages = async (): Promise<readonly string[]> => [];

  ensure = async ({ report, ...spec }: SandboxOrder, signal: AbortSignal): Promise<Sandbox> => {
    signal.throwIfAborted();
    await this.#prepare();
    using followed = this.#changes.follow(podName(spec.name));
    const pod = await this.#creations.run(() => this.#createOrFind(spec), signal);
    const progress = this.#progressOf(spec.image, report);
    const { scheduleSec } = this.#settings;
    const awaited = this.#awaited(spec.name, pod, followed);
    const running = await untilRunning(awaited, { spec, progress, scheduleSec }, signal);
    this.#noteContent(spec.image, running);
    const sandbox = this.#sandboxOf(running, spec.name);
    if (sandbox === undefined) throw foreignPod(spec.name);
    for (const files of spec.files ?? []) await sandbox.putFiles(files, signal);
    return sandbox;
  };

  attach = async (name: string): Promise<Sandbox | undefined> => {
    const pod = await this.#find(name);
    return pod && this.#sandboxOf(pod, name);
  };

  remove = async (name: string): Promise<boolean> => {
    using followed = this.#changes.follow(podName(name));
    const pod = await this.#find(name);
    if (pod === undefined) return false;
    const uid = pod.metadata?.uid ?? '';
    const { core, namespace } = await this.#open();
    const body = { preconditions: { uid } };
    try {
      await callApi(namespace, () => core.deleteNamespacedPod({ namespace, name: podName(name), body }));
      await untilGone(this.#awaited(name, pod, followed), name, this.#removals);
    } catch (error) {
      // It is gone, or another Pod has the name by now.
      if (apiStatus(error) !== 404 && apiStatus(error) !== 409) throw error;
    }
    this.#forget(uid);
    return true;
  };

  list = async (stack: string): Promise<readonly SandboxInfo[]> => {
    const { core, namespace } = await this.#open();
    const labelSelector = `${stackLabel}=${labelValue(stack)}`;
    const found: SandboxInfo[] = [];
    for (let next: string | undefined; ; ) {
      const query = { namespace, labelSelector, limit: pageSize, ...(next !== undefined && { _continue: next }) };
      const { items, metadata } = await callApi(namespace, () => core.listNamespacedPod(query));
      found.push(...items.flatMap((pod) => infoOf(pod) ?? []).filter(({ labels }) => labels.stack === stack));
      next = metadata?._continue;
      if (next === undefined || next === '') return found;
    }
  };

  /** The cluster itself finishes a removal that it has accepted. */
  clearLeftovers = async (): Promise<void> => undefined;

  supports = async ({
    task,
    imageFrom,
    root = false,
    hosts = [],
  }: SandboxNeeds): Promise<UnsupportedReason | undefined> => {
    if (imageFrom === 'dockerfile') return { type: 'UnsupportedTask', message: dockerfileRefusal(task) };
    const odd = hosts.find((name) => !isPodHost(name));
    if (odd !== undefined) return { type: 'UnsupportedTask', message: hostRefusal(task, odd) };
    return root ? this.#refusedRoot(task) : undefined;
  };

  describe = () => describeCluster(this.#settings, () => this.#open());

  close = async (): Promise<void> => {
    this.#changes.close();
    this.#connections.closeAll();
  };

  #open(): Promise<Cluster> {
    this.#cluster ??= openCluster(this.#settings.namespace);
    this.#cluster.catch(() => {
      this.#cluster = undefined;
    });
    return this.#cluster;
  }

  /** Makes sure that the stack's Pods have no network. Creations at the same time share the look. */
  #prepare(): Promise<void> {
    this.#preparing ??= this.#open()
      .then((cluster) => ensureNoNetwork(cluster, this.#stack))
      .finally(() => {
        this.#preparing = undefined;
      });
    return this.#preparing;
  }

  async #createOrFind(spec: SandboxSpec): Promise<V1Pod> {
    const { core, namespace } = await this.#open();
    const body = describePod(spec, this.#settings, this.#changes.labels);
    try {
      return await callApi(namespace, () => core.createNamespacedPod({ namespace, body }));
    } catch (error) {
      if (apiStatus(error) !== 409) throw unmade(namespace, error);
    }
    const pod = await this.#read(spec.name);
    if (pod === undefined) throw justRemoved(spec.name);
    const labels = labelsOf(pod.metadata?.annotations ?? {});
    if (labels === undefined || sandboxName(pod) !== spec.name) throw foreignPod(spec.name);
    requireSameEpoch(spec.name, spec.labels, labels);
    return pod;
  }

  #awaited(name: string, pod: V1Pod, followed: FollowedPod): AwaitedPod {
    return { pod, followed, read: () => this.#read(name) };
  }

  #noteContent(image: string, { status }: V1Pod): void {
    const id = status?.containerStatuses?.[0]?.imageID;
    if (id) this.#contents.set(image, id);
  }

  async #read(name: string): Promise<V1Pod | undefined> {
    const { core, namespace } = await this.#open();
    return callApi(namespace, () => core.readNamespacedPod({ namespace, name: podName(name) })).catch(orIfMissing);
  }

  /** Finds the Pod of a sandbox of this stack. */
  async #find(name: string): Promise<V1Pod | undefined> {
    const pod = await this.#read(name);
    const labels = labelsOf(pod?.metadata?.annotations ?? {});
    return pod && labels?.stack === this.#stack && sandboxName(pod) === name ? pod : undefined;
  }

  #sandboxOf(found: V1Pod, name: string): Sandbox | undefined {
    const { metadata } = found;
    const labels = labelsOf(metadata?.annotations ?? {});
    const spec = storedSpecOf(metadata?.annotations ?? {});
    const uid = metadata?.uid;
    if (labels === undefined || spec === undefined || uid === undefined) return undefined;
    const [root, pod] = [spec.root === true, podName(name)];
    const connect = () => this.#connections.to({ uid, pod, root, fence: this.#fence });
    const blocked = { pod, sandbox: name, root, connect };
    const shell = createPodShell({
      name,
      workdir: spec.workdir,
      inMemory: memoryPaths(found),
      root,
      connect: async () => {
        const known = this.#blocked.get(uid);
        if (known) throw known;
        return connect();
      },
      findBlock: async (cause) => {
        const block = await findBlock({ ...blocked, cluster: await this.#open() }, cause);
        if (block) this.#blocked.set(uid, block);
        return block;
      },
      findLoss: async () => {
        const loss = lossOf(name, uid, await this.#read(name));
        // Nothing removes a Pod that is gone, so this is the last look at what is kept for it.
        if (loss) this.#forget(uid);
        return loss;
      },
    });
    const changes = createCarriedChanges(shell, root);
    return createShellSandbox({ kind: this.kind, shell, labels, spec, reports: this.#reports.of(uid), changes });
  }

  /** Drops what this process keeps for a Pod. */
  #forget(uid: string): void {
    this.#connections.close(uid);
    this.#reports.forget(uid);
    this.#blocked.delete(uid);
  }
}

const hostRefusal = (task: string, host: string): string =>
  `task ${task} names the host ${host}, which a Pod cannot know: expected letters, digits, "-" and "."; rename it, or use Docker`;

const dockerfileRefusal = (task: string): string =>
  `task ${task} needs its Dockerfile built, which a cluster does not do; build and push the image, and name it in task.toml`;
