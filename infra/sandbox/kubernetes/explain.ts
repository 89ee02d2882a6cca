import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { type LossCause, SandboxFailure, type SandboxFailureType } from '../failure.ts';
import { type ImageProgress, imageProgressText } from '../image.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { container, lacksProgram, loadsFiles, podName } from './pod.ts';
import { witness } from './witness.ts';

/** Returns the failure that will keep a Pod from ever running, by the kubelet's words. Undefined while it may still run. */
export function arrivalFailure(pod: V1Pod, image: string): SandboxFailure | undefined {
  const [waiting] = statusesOf(pod).filter(({ state }) => state?.waiting && !isWaiting(state.waiting));
  const { reason = '', message = '' } = waiting?.state?.waiting ?? {};
  const failure = waitFailure(image, reason, message);
  const programs = programsOf(pod);
  const isOfPrograms = waiting?.name === witness || isAbout(programs, image, message);
  return failure && programs !== undefined && isOfPrograms ? programsFailure(programs, reason, message) : failure;
}

/** Explains that a Pod did not run in time: no node had room for it, or its node did not have the images yet. */
export function tooLate(
  pod: V1Pod,
  { name, image }: SandboxSpec,
  waitedSec: number,
  progress: ImageProgress,
): SandboxFailure {
  const details = { evidence: imageProgressText(progress) };
  const { nodeName } = pod.spec ?? {};
  if (nodeName === undefined) {
    const text = `the Pod of sandbox ${name} did not run within ${waitedSec} s; add nodes, or lower TEMPER_CAPACITY`;
    return new SandboxFailure('SandboxUnavailable', text, details);
  }
  const why =
    progress.doing === 'pulling' ? `still pulls ${progress.image}` : `may still pull ${image} or ${programsOf(pod)}`;
  const text = `node ${nodeName} did not start the Pod of sandbox ${name} within ${waitedSec} s, and ${why}; it is tried again, or raise TEMPER_KUBERNETES_WAIT`;
  return new SandboxFailure('ImageUnavailable', text, details);
}

export function foreignPod(name: string): SandboxFailure {
  const text = `a Pod that temper did not make has the name ${podName(name)}; remove or rename it`;
  return new SandboxFailure('SandboxConflict', text);
}

export function justRemoved(name: string): SandboxFailure {
  return new SandboxFailure('SandboxUnavailable', `the Pod of sandbox ${name} was just removed; it is made again`);
}

export function stillThere(name: string, waitedSec: number): SandboxFailure {
  const text = `the Pod of sandbox ${name} was deleted and is still there after ${waitedSec} s: its node may be lost, or too busy; it is looked at again`;
  return new SandboxFailure('SandboxUnavailable', text);
}

/** Whether a container only waits for one that starts before it. */
const isWaiting = ({ reason }: { readonly reason?: string }): boolean => reason === 'PodInitializing';

const statusesOf = ({ status }: V1Pod): readonly V1ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];

/** The image with the agents' programs, which a Pod mounts. */
const programsOf = ({ spec }: V1Pod): string | undefined => spec?.volumes?.find(({ image }) => image)?.image?.reference;

/** Whether the kubelet's words name the image of programs, and not the task's. The name of one may be part of the other's. */
function isAbout(programs: string | undefined, image: string, message: string): boolean {
  if (programs === undefined || !message.includes(programs)) return false;
  return programs.length > image.length || !message.includes(image);
}

/** Explains that the image of programs can't be had, which is not the task's doing. */
function programsFailure(programs: string, reason: string, message: string): SandboxFailure {
  const text = `the cluster could not get the image of programs ${programs}; correct TEMPER_KUBERNETES_PROGRAMS, make and push the image with infra/images/programs.ts, or let the cluster pull it`;
  return new SandboxFailure('SandboxUnavailable', text, { evidence: evidenceOf(reason, message) });
}

const evidenceOf = (reason: string, message: string): string => `${reason}: ${message}`.slice(0, 500);

/** A reason for which a container waits, and what it is evidence of. */
interface Wait {
  readonly reason: RegExp;
  /** The kubelet's words beside the names of images. Default: any. */
  readonly words?: RegExp;
  /** Null where the kubelet tries again and its next message may say more. */
  readonly type: SandboxFailureType | null;
  readonly text: (image: string) => string;
}

const pull = /^(ErrImagePull|ImagePullBackOff)$/;

/** The reasons for which a container waits without end. The first that fits counts. */
const waits: readonly Wait[] = [
  {
    reason: /^ErrImageNeverPull$/,
    type: 'MissingImage',
    text: (image) => `the image ${image} is not on the Pod's node; load it there, or let the node pull it`,
  },
  {
    reason: /^InvalidImageName$/,
    type: 'MissingImage',
    text: (image) => `the cluster takes ${image} for no image's name; correct it in the task`,
  },
  {
    reason: pull,
    words: /unauthori[sz]ed|authentication required|denied|forbidden|\b40[13]\b/i,
    type: 'MissingImage',
    text: (image) =>
      `the registry of image ${image} refused the cluster; give the namespace's service account an image pull secret`,
  },
  {
    reason: pull,
    words: /^(?!.*(no such host|lookup)).*(not found|manifest unknown|does not exist|no such)/is,
    type: 'MissingImage',
    text: (image) => `no registry has the image ${image}; correct its name, or push it`,
  },
  { reason: /^ImagePullBackOff$/, words: /^Back-off pulling image\W*$/, type: null, text: () => '' },
  {
    reason: pull,
    type: 'ImageUnavailable',
    text: (image) => `the cluster could not pull the image ${image}; it is tried again`,
  },
  {
    reason: /^(CreateContainer(Config)?Error|RunContainerError)$/,
    type: 'UnsupportedTask',
    text: (image) => `the cluster could not start a container of image ${image}; see the evidence`,
  },
];

/** Returns the failure that the reason of a waiting container is evidence of. */
function waitFailure(image: string, reason: string, message: string): SandboxFailure | undefined {
  // The name of an image may hold words such as 403, too. In most messages it has a slash, as addresses have.
  const untagged = image.replace(/[:@][^/]*$/, '');
  const said = message
    .split(/\s+/)
    .filter((word) => !word.includes('/'))
    .join(' ')
    .replaceAll(image, '')
    .replaceAll(untagged, '');
  const found = waits.find((wait) => wait.reason.test(reason) && (wait.words === undefined || wait.words.test(said)));
  if (found === undefined || found.type === null) return undefined;
  return new SandboxFailure(found.type, found.text(image), { evidence: evidenceOf(reason, message) });
}

const preempted = ['preempted', 'its Pod made room for another of higher priority'] as const;
const nodeLost = ['node-lost', 'its node was lost'] as const;
const nodeShutDown = ['node-lost', 'its node was shut down'] as const;
const outOfMemory = ['out-of-memory', 'its main process was killed for memory'] as const;
const deleted = ['removed', 'its Pod is being deleted'] as const;
const over = ['unknown', 'its main process ended'] as const;
const evicted = ['evicted', 'its Pod was evicted'] as const;
const outOfDisk = ['out-of-disk', 'its Pod exceeded its limit of disk'] as const;

/** The reasons of a Pod that ended, with what they are evidence of. */
const podReasons: Readonly<Record<string, readonly [LossCause, string]>> = {
  Evicted: evicted,
  DeadlineExceeded: ['deadline', 'its Pod reached its deadline'],
  Preempted: preempted,
  Preempting: preempted,
  NodeLost: nodeLost,
  NodeShutdown: nodeShutDown,
  Terminated: nodeShutDown,
  Shutdown: nodeShutDown,
};

/** The words of the kubelet about a Pod that used more disk than its own limits allow. */
const ownDisk =
  /Pod ephemeral local storage usage exceeds|Container .* exceeded its local ephemeral storage|Usage of EmptyDir/;

/** Explains why a sandbox that should run does not, from its Pod. Undefined if it runs. */
export function lossOf(name: string, uid: string | undefined, pod: V1Pod | undefined): SandboxFailure | undefined {
  if (pod === undefined) return lost(name, 'removed', 'its Pod no longer exists', 'no such Pod');
  if (uid !== undefined && pod.metadata?.uid !== uid) {
    return lost(name, 'removed', 'its Pod was removed, and another has its name', `uid ${pod.metadata?.uid}`);
  }
  const { phase, reason, message } = pod.status ?? {};
  // The kubelet fails a Pod before it writes down how the container ended, so the Pod's own reason comes first.
  const disrupted = pod.status?.conditions?.find(
    ({ type, status }) => type === 'DisruptionTarget' && status === 'True',
  );
  const cause = podReasons[reason ?? ''] ?? disruption(disrupted?.reason);
  const known = cause === evicted && ownDisk.test(`${message}`) ? outOfDisk : cause;
  const evidence = [phase, reason, message, disrupted?.reason, disrupted?.message].filter(Boolean).join(', ');
  // A Pod with a container beside the sandbox counts as running until that has ended, too.
  const ended = pod.status?.containerStatuses?.find(({ name: one }) => one === container)?.state?.terminated;
  if (phase === 'Failed' || phase === 'Succeeded' || ended !== undefined) {
    if (known) return lost(name, ...known, evidence);
    if (ended?.exitCode === lacksProgram) return lacking(name, pod, `${ended.message}`.trim());
    // Between complaints of the loader, the set-up has named the file.
    const named = `${ended?.message}`.split('\n').findLast((line) => line.startsWith('/'));
    if (ended?.exitCode === loadsFiles) return loadsOfAgent(name, `${named}`);
    const how = ended ? `${ended.reason ?? 'ended'}, exit code ${ended.exitCode}, ${ended.message ?? ''}` : 'no status';
    const [loss, text] = ended?.reason === 'OOMKilled' ? outOfMemory : pod.metadata?.deletionTimestamp ? deleted : over;
    return lost(name, loss, text, `${evidence}, ${how}`.slice(0, 500));
  }
  if (pod.metadata?.deletionTimestamp === undefined) return undefined;
  return lost(name, ...(known ?? deleted), evidence);
}

function lacking(name: string, pod: V1Pod, program: string): SandboxFailure {
  const text = `the image ${programsOf(pod)} lacks the program ${program} that sandbox ${name} needs; make it again from this version of temper, with infra/images/programs.ts`;
  return new SandboxFailure('SandboxUnavailable', text);
}

function loadsOfAgent(name: string, file: string): SandboxFailure {
  const text = `the image of sandbox ${name} sets LD_PRELOAD, LD_AUDIT or GCONV_PATH to ${file}, which its agent could replace, and a cluster starts temper's own programs with it; move the file out of the agent's directories, or use another kind of sandbox`;
  return new SandboxFailure('UnsupportedTask', text);
}

function disruption(reason: string | undefined): readonly [LossCause, string] | undefined {
  if (reason === undefined) return undefined;
  if (reason === 'PreemptionByScheduler') return preempted;
  if (reason === 'DeletionByTaintManager' || reason === 'DeletionByPodGC') return nodeLost;
  return evicted;
}

function lost(name: string, loss: LossCause, how: string, evidence: string): SandboxFailure {
  const text = `sandbox ${name} no longer runs: ${how}; the rollout continues in a new sandbox`;
  return new SandboxFailure('SandboxLost', text, { loss, evidence });
}
