import { createHash } from 'node:crypto';
import type { V1Pod } from '@kubernetes/client-node';
import type { HostEntry } from '../../../workflows/contracts/task.ts';
import { SandboxFailure } from '../failure.ts';
import { flatLabels, flatSpec, labelsOf } from '../labels.ts';
import { requireName } from '../names.ts';
import type { SandboxInfo, SandboxSpec } from '../sandbox.ts';
import { keeperId, uidOf } from '../shell/accounts.ts';
import { keepOwnPrograms } from '../shell/own-programs.ts';
import { keeperDirectory } from '../shell/scripts.ts';
import { clean, drop, idle, keeperCapabilities, programsDirectory, readyFile } from './keeper/program.ts';
import type { KubernetesSettings } from './settings.ts';
import { memoryDirectories, volumesOf } from './volumes.ts';
import { witnessContainer } from './witness.ts';

/** A sandbox's Pod, as its keeper is to serve it. */
export interface KeptPod {
  readonly pod: string;
  /** Whether the keeper can make others root. */
  readonly root: boolean;
  /** Returns the fencing token that this host holds. */
  readonly fence: () => string | null;
}

/** The container of a sandbox's Pod. */
export const container = 'sandbox';
/** The label with the stack of a Pod. */
export const stackLabel = 'temper.stack';
/** The annotation with the name of a Pod's sandbox. */
export const nameAnnotation = 'temper.name';

/** Memory on top of the sandbox's own limit, for the keeper, one for each process that is connected. */
const keeperMemoryMb = 128;
/** The part of the cluster's disk limit that is not the sandbox's own: it ends a Pod only where temper's own check fails. */
const spareDiskMb = 1_024;
const diskFactor = 2;
/** Time that a Pod outlives its sandbox's time to live, because the rollout's next stage may wait in a queue. */
const spareLifeSec = 900;
const graceSec = 1;
const longestName = 63;
const longestLabel = 63;

/** Returns the name of a sandbox's Pod: the sandbox's own where that is a DNS label, else one with a hash of it. */
export function podName(sandbox: string): string {
  requireName(sandbox);
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(sandbox) && sandbox.length <= longestName) return sandbox;
  const readable = sandbox.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-');
  return `${readable.slice(0, longestName - 18)}-x${hash(sandbox)}`;
}

/** Returns a text as the value of a label, or its hash if it can't be one. */
export function labelValue(text: string): string {
  const valid = text.length <= longestLabel && /^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$/.test(text);
  return valid ? text : `x${hash(text)}`;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** Returns the name of the sandbox of a Pod. */
export const sandboxName = (pod: V1Pod): string | undefined => pod.metadata?.annotations?.[nameAnnotation];

/** Returns the sandbox of a Pod; undefined if temper did not make it. */
export function infoOf(pod: V1Pod): SandboxInfo | undefined {
  const labels = labelsOf(pod.metadata?.annotations ?? {});
  const name = sandboxName(pod);
  if (labels === undefined || name === undefined) return undefined;
  const createdAtMs = Number(pod.metadata?.creationTimestamp ?? 0);
  const running = pod.status?.phase === 'Running' && pod.metadata?.deletionTimestamp === undefined;
  return { name, kind: 'kubernetes', labels, createdAtMs, running };
}

/** Describes the Pod of a sandbox, with further labels. */
export function describePod(
  spec: SandboxSpec,
  settings: KubernetesSettings,
  further: Readonly<Record<string, string>> = {},
): V1Pod {
  const { name, labels, image } = spec;
  const lifeSec = Math.ceil((labels.expiresAtMs - Date.now()) / 1000) + spareLifeSec;
  const { volumes, volumeMounts } = volumesOf(settings.programs, spec);
  const { runtimeClass, nodeSelector } = settings;
  return {
    metadata: {
      name: podName(name),
      labels: {
        [stackLabel]: labelValue(labels.stack),
        'temper.run': labelValue(labels.run),
        'temper.rollout': labelValue(labels.rollout),
        ...further,
      },
      annotations: { [nameAnnotation]: name, ...flatLabels(labels), ...flatSpec(spec) },
    },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: Math.max(1, lifeSec),
      terminationGracePeriodSeconds: graceSec,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostname: 'sandbox',
      ...(spec.hosts !== undefined && namesOf(spec.hosts)),
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      ...(runtimeClass !== null && { runtimeClassName: runtimeClass }),
      nodeSelector,
      volumes,
      ...(spec.root && { initContainers: [witnessContainer(volumeMounts, settings.programs)] }),
      containers: [
        {
          name: container,
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['sh', '-c', spec.root ? setUpForRoot : setUp, 'temper', ...setUpArguments(spec)],
          workingDir: '/',
          terminationMessagePolicy: 'FallbackToLogsOnError',
          securityContext: {
            runAsUser: 0,
            runAsGroup: 0,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'], add: [...keeperCapabilities(spec.root === true)] },
          },
          resources: resourcesOf(spec, settings.requests),
          volumeMounts,
        },
      ],
    },
  };
}

/** Whether a cluster accepts a name of a host, which is the same in small letters. */
export const isPodHost = (name: string): boolean =>
  /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(name);

/**
 * Describes the names that a Pod knows. Programs ask a name server for what the file of names lacks, such as an IPv6 address, and
 * that of a cluster never answers a Pod without a network: a port where nothing listens refuses at once.
 */
const namesOf = (hosts: readonly HostEntry[]) => ({
  hostAliases: [...Map.groupBy(hosts, ({ address }) => address)].map(([ip, named]) => ({
    ip,
    hostnames: named.map(({ name }) => name.toLowerCase()),
  })),
  dnsPolicy: 'None',
  dnsConfig: { nameservers: ['127.0.0.1'] },
});

function resourcesOf({ cpus, memoryMb, diskMb }: SandboxSpec, share: number) {
  const amounts = (part: number, disk: number) => ({
    cpu: `${Math.ceil(cpus * 1000 * part)}m`,
    memory: `${Math.ceil((memoryMb + keeperMemoryMb) * part)}Mi`,
    'ephemeral-storage': `${Math.ceil(disk * part)}Mi`,
  });
  return { limits: amounts(1, diskMb * diskFactor + spareDiskMb), requests: amounts(share, diskMb) };
}

/** Returns the place of each program that a sandbox asks for in the image that has them all, and the path that leads there. */
const linksOf = ({ mounts }: SandboxSpec): readonly string[] =>
  mounts.flatMap(({ program, source, target }) => {
    if (program === undefined) throw notMountable(source);
    return [`${programsDirectory}/${program.name}-${program.version}`, target];
  });

function notMountable(source: string): SandboxFailure {
  return new SandboxFailure(
    'UnsupportedTask',
    `a Pod can't mount the directory ${source} of this host; use another sandbox`,
  );
}

/** The exit code of a Pod whose image of programs lacks one, which its last words name. */
export const lacksProgram = 65;

/** The exit code of a Pod whose image loads a file of the agent into every program, which its last words name. */
export const loadsFiles = 66;

/**
 * Keeps where temper's own programs are, and the image's environment without the cluster's variables. An image without sh at its usual
 * place gets a link there. The cluster starts every command with the image's variables, so that no program is safe that loads a
 * file of the agent by them.
 */
const keep = `
places="$workdir /home/agent /logs/agent"
unset KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT
unset KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_PROTO KUBERNETES_PORT_443_TCP_PORT KUBERNETES_PORT_443_TCP_ADDR
[ -e /bin/sh ] || { mkdir -p /bin; ln -s "$(command -v sh)" /bin/sh; }
set +e
${keepOwnPrograms}
for file in $(IFS=' :'; echo $LD_PRELOAD $LD_AUDIT $GCONV_PATH); do
  case $file in /*) ;; *) continue ;; esac
  [ -z "$agent" ] || own "$(readlink -f "$file" || echo "$file")" || { echo "$file"; exit ${loadsFiles}; }
done
set -e
`;

/**
 * Sets the sandbox up as root, before anything else runs in it, and then keeps it alive under the keeper's uid. $1 the agent's
 * uid, $2 the working directory, $3 the keeper's directory, $4 the ready file, $5 the keeper's uid, $6 the number of words
 * after it that are programs and their links, the same for directories in memory, the rest: the program that drops capabilities.
 * It ends with a failure, since the cluster counts a Pod that ends well as completed, even one it evicts.
 */
const setUp = `${start('/home/agent')}
chown -R -h "$agent:$agent" "$workdir" /logs/agent /home/agent
echo "agent:x:$agent:$agent:agent:/home/agent:/bin/sh" >>/etc/passwd
echo "agent:x:$agent:" >>/etc/group
${keep}
: >"$ready"
chmod 711 "$keeper"; chown "$id:$id" "$ready" "$keeper"
exec "$@" --reuid="$id" --regid="$id" --clear-groups --no-new-privs --ambient-caps=-all --inh-caps=-all \\
  ${clean.join(' ')} PATH="$PATH" /bin/sh -c 'trap "exit 143" TERM; while :; do sleep 86400 & wait $!; done'
`;

/**
 * The second uid of the first process of a sandbox whose agent is root. No account has both, so that none may change its limits,
 * and the kernel lets none look into it. It has a capability that the agent can't get, too.
 */
const unreachableId = keeperId + 1;

/**
 * The same for a sandbox whose agent is root. Nothing that runs there ends its first process, apart from the kernel when memory is
 * full: it handles no signal, and is a program of the read-only mount, as the agent may replace those of the image.
 */
const setUpForRoot = `${start('')}
agent=
${keep}
: >"$ready"
chmod 711 "$keeper"; chown "$id:$id" "$ready" "$keeper"
exec "$@" --ruid="$id" --euid=${unreachableId} --rgid="$id" --egid=${unreachableId} --clear-groups --no-new-privs \\
  --inh-caps=-all,+setpcap --ambient-caps=-all,+setpcap ${idle.join(' ')}
`;

/**
 * Returns the beginning of both: the links to programs, the directories in memory, in which every account may write, and the
 * directories of every sandbox and a further one.
 */
function start(further: string): string {
  return `
set -e
agent=$1 workdir=$2 keeper=$3 ready=$4 id=$5 words=$6; shift 6
while [ "$words" -gt 0 ]; do
  [ -e "$1" ] || { echo "$1"; exit ${lacksProgram}; }
  ln -sfn "$1" "$2"
  words=$((words - 2)); shift 2
done
words=$1; shift
while [ "$words" -gt 0 ]; do chmod 1777 "$1"; words=$((words - 1)); shift; done
mkdir -p "$workdir" /tests /logs/verifier /logs/agent ${further}
chmod 700 /tests /logs/verifier; chmod 755 /logs`;
}

function setUpArguments(spec: SandboxSpec): readonly string[] {
  const { name, workdir } = spec;
  if (!workdir.startsWith('/') || workdir.split('/').includes('..')) {
    const text = `expected an absolute working directory without "..", got ${JSON.stringify(workdir)}`;
    throw new SandboxFailure('UnsupportedTask', text);
  }
  const files = [workdir, keeperDirectory, readyFile];
  const lists = [linksOf(spec), [...memoryDirectories(spec).keys()]];
  const counted = lists.flatMap((words) => [String(words.length), ...words]);
  return [String(uidOf(name, 'agent')), ...files, String(keeperId), ...counted, ...drop];
}
