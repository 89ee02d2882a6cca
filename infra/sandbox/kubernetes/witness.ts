import type { V1Container, V1VolumeMount } from '@kubernetes/client-node';
import { drop, idle, node, programsDirectory } from './keeper/program.ts';

/** The container that shows whether the cluster can start commands. */
export const witness = 'witness';

const unprivilegedId = 65_534;
/** The memory of the container: the runtime needs some for each command that it starts there. */
const memoryMb = 64;

/**
 * Describes the container that shows whether the cluster can start commands in the Pod of a sandbox whose agent is root. Nothing in the
 * sandbox reaches it. If a command starts here and none starts in the sandbox, what runs in the sandbox is the cause. It ends with
 * the sandbox.
 */
export function witnessContainer(mounts: readonly V1VolumeMount[], programs: string): V1Container {
  return { ...describeWitness(mounts, programs), restartPolicy: 'Always' };
}

/** Describes the container itself, which may be in a Pod of its own. */
export function describeWitness(mounts: readonly V1VolumeMount[], programs: string): V1Container {
  const amounts = { cpu: '100m', memory: `${memoryMb}Mi`, 'ephemeral-storage': '16Mi' };
  return {
    name: witness,
    image: programs,
    imagePullPolicy: 'IfNotPresent',
    command: [...idle],
    workingDir: '/',
    securityContext: {
      runAsUser: unprivilegedId,
      runAsGroup: unprivilegedId,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    resources: { limits: amounts, requests: { ...amounts, cpu: '1m' } },
    volumeMounts: mounts.filter(({ mountPath }) => mountPath === programsDirectory),
  };
}

/** The command that shows that the cluster can start one. */
export const sign: readonly string[] = [...node, '--version'];

/** The same in another sandbox, with as little of its memory as possible. */
export const smallSign: readonly string[] = [...drop, '--version'];
