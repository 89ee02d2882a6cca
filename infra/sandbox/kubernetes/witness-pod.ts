import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import type { Cluster } from './client.ts';
import { execPath } from './exec-path.ts';
import { container, nameAnnotation, stackLabel } from './pod.ts';
import { describeWitness, sign, smallSign, witness } from './witness.ts';

const startMs = 30_000;
const lookEveryMs = 200;
const lifeSec = 300;
const signMs = 30_000;
const statusStream = 3;
/** The most other sandboxes of a node that are asked for a sign. */
const mostNeighbours = 3;

/** A container that nothing in a sandbox reaches, on the node of its Pod. */
export interface Witness extends AsyncDisposable {
  /** Whether the cluster starts a command in it now. */
  showsSign(): Promise<boolean>;
}

/** Returns the witness in the Pod of a sandbox whose agent is root. */
export function witnessBeside(cluster: Cluster, pod: string): Witness {
  return { showsSign: () => showsSign(cluster, pod), [Symbol.asyncDispose]: async () => undefined };
}

/** Whether the cluster starts a command now in another sandbox of the stack on the node of a Pod. */
async function neighbourShowsSign(cluster: Cluster, pod: string): Promise<boolean> {
  const { core, namespace } = cluster;
  const { metadata, spec } = await core.readNamespacedPod({ namespace, name: pod });
  const labelSelector = `${stackLabel}=${metadata?.labels?.[stackLabel]}`;
  const fieldSelector = `spec.nodeName=${spec?.nodeName},status.phase=Running,metadata.name!=${pod}`;
  const { items } = await core.listNamespacedPod({ namespace, labelSelector, fieldSelector });
  // Whatever an agent does in its sandbox, it cannot have the cluster report a command that did not start.
  const neighbours = items.filter(({ spec }) => spec?.containers.some(({ name }) => name === container));
  for (const { metadata } of neighbours.slice(0, mostNeighbours)) {
    if (await showsSign(cluster, metadata?.name ?? '', container, smallSign)) return true;
  }
  return false;
}

/**
 * Returns a witness that has a Pod of its own on the node of a sandbox's Pod, since one in each Pod would cost memory and time. The
 * Pod is made when the first sign is asked for. It has the labels of the sandbox, by which it is removed if this process dies. Where
 * the cluster does not run it, as with a quota that is used up, other sandboxes on the node take its place.
 */
export function startWitness(cluster: Cluster, pod: string): Witness {
  const { core, namespace } = cluster;
  const name = `${witness}-${randomUUID()}`;
  let made: Promise<boolean> | undefined;
  const make = async (): Promise<boolean> => {
    const sandbox = await core.readNamespacedPod({ namespace, name: pod });
    await core.createNamespacedPod({ namespace, body: describeOn(sandbox, name) });
    return runs(cluster, name);
  };
  return {
    // Without any there is no evidence: the connection counts as cut, and its failure is thrown.
    showsSign: async () => {
      made ??= make().catch(() => false);
      return (await made) ? showsSign(cluster, name) : neighbourShowsSign(cluster, pod).catch(() => false);
    },
    [Symbol.asyncDispose]: async () => {
      if (made === undefined) return;
      await made;
      // What can't be removed now is ended by its deadline, and removed with the other Pods of its rollout.
      await core.deleteNamespacedPod({ namespace, name }).catch(() => undefined);
    },
  };
}

/** Describes the Pod of a witness on the node of a sandbox's Pod. */
function describeOn({ metadata, spec }: V1Pod, name: string): V1Pod {
  const volumes = spec?.volumes?.filter(({ image }) => image !== undefined) ?? [];
  const programs = volumes[0]?.image?.reference ?? '';
  return {
    metadata: {
      name,
      labels: { ...metadata?.labels },
      annotations: { ...metadata?.annotations, [nameAnnotation]: name },
    },
    spec: {
      ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }),
      ...(spec?.runtimeClassName !== undefined && { runtimeClassName: spec.runtimeClassName }),
      restartPolicy: 'Never',
      activeDeadlineSeconds: lifeSec,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      volumes,
      containers: [describeWitness(spec?.containers[0]?.volumeMounts ?? [], programs)],
    },
  };
}

async function runs({ core, namespace }: Cluster, name: string): Promise<boolean> {
  for (const endMs = Date.now() + startMs; Date.now() < endMs; await delay(lookEveryMs)) {
    const { phase = 'Pending' } = (await core.readNamespacedPod({ namespace, name })).status ?? {};
    if (phase !== 'Pending') return phase === 'Running';
  }
  return false;
}

/** Whether the cluster starts a command in a container of a Pod, which is the witness unless another is named. */
async function showsSign(
  { namespace, sockets }: Cluster,
  pod: string,
  within = witness,
  command = sign,
): Promise<boolean> {
  const ended = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => ended.resolve(false), signMs);
  const path = execPath({ namespace, pod, container: within, stdin: false }, command);
  const opening = sockets.connect(path, null, (stream, bytes) => {
    if (stream === statusStream) ended.resolve(String(bytes).includes('"Success"'));
    return true;
  });
  opening.then(
    (socket) => socket.on('close', () => ended.resolve(false)),
    () => ended.resolve(false),
  );
  try {
    return await ended.promise;
  } finally {
    clearTimeout(timer);
    opening.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
  }
}
