import type { V1Pod, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import type { SandboxSpec } from '../sandbox.ts';
import { keeperDirectory } from '../shell/scripts.ts';
import { programsDirectory } from './keeper/program.ts';

const keeperFilesMb = 256;
const sharedMemory = '/dev/shm';
/** The beginning of the names of the volumes that a task asks for. */
const taskVolume = 'memory-';

/** Returns the volumes of a sandbox's Pod: its programs, the keeper's directory, and the directories in memory. */
export function volumesOf(programs: string, spec: SandboxSpec) {
  const image = { name: 'programs', image: { reference: programs, pullPolicy: 'IfNotPresent' } };
  const keeper = inMemory('keeper', keeperFilesMb);
  const directories = [...memoryDirectories(spec)].map(([mountPath, sizeMb], index) => {
    const name = `${taskVolume}${index}`;
    return { volume: inMemory(name, sizeMb), mount: { name, mountPath } };
  });
  const volumes: V1Volume[] = [image, keeper, ...directories.map(({ volume }) => volume)];
  const volumeMounts: V1VolumeMount[] = [
    { name: image.name, mountPath: programsDirectory, readOnly: true },
    { name: keeper.name, mountPath: keeperDirectory },
    ...directories.map(({ mount }) => mount),
  ];
  return { volumes, volumeMounts };
}

/** Returns the sizes in MB of the directories in memory that a task asks for, by path. The last one of a path counts, as in Docker. */
export const memoryDirectories = ({ sharedMemoryMb, tmpfs = [] }: SandboxSpec): ReadonlyMap<string, number> =>
  new Map([
    ...(sharedMemoryMb === undefined ? [] : [[sharedMemory, sharedMemoryMb] as const]),
    ...tmpfs.map(({ path, sizeMb }) => [path, sizeMb] as const),
  ]);

/** Returns the paths of the directories in memory that the task of a Pod asks for. */
export const memoryPaths = ({ spec }: V1Pod): readonly string[] =>
  (spec?.containers ?? [])
    .flatMap(({ volumeMounts = [] }) => volumeMounts)
    .filter(({ name }) => name.startsWith(taskVolume))
    .map(({ mountPath }) => mountPath);

/** Describes a volume whose files count as memory of the container that writes them. */
const inMemory = (name: string, sizeMb: number): V1Volume => ({
  name,
  emptyDir: { medium: 'Memory', sizeLimit: `${sizeMb}Mi` },
});
