import type { Ulimit } from '../../workflows/contracts/task.ts';
import type { FileEntry, FileTree } from './file-tree.ts';
import type { BuildContext, ImageName } from './image.ts';
import type { MemoryDirectory } from './memory-directory.ts';

/** The check by which the container engine tells whether a service is ready. */
export interface ServiceHealthCheck {
  /** The check in Docker's form: `CMD` or `CMD-SHELL` and the command, or `NONE`. Without it, the image's check is used. */
  readonly test?: readonly string[];
  readonly intervalMs?: number;
  readonly timeoutMs?: number;
  readonly startPeriodMs?: number;
  readonly retries?: number;
}

/** Another service that must have reached a state before this one starts. */
export interface ServiceDependency {
  readonly service: string;
  readonly until: 'started' | 'healthy' | 'completed';
}

/** A directory that containers of one sandbox share, made for this sandbox; without a name, that of one container alone. */
export interface ServiceVolume {
  readonly name: string | null;
  readonly target: string;
  readonly readOnly: boolean;
}

/** A container beside a sandbox, apart from its image. */
export interface ServiceSettings {
  readonly name: string;
  /** Further names by which the others reach it. */
  readonly aliases: readonly string[];
  /** The entry point and the command, where they replace those of the image. */
  readonly entrypoint: readonly string[] | null;
  readonly command: readonly string[] | null;
  readonly workdir: string | null;
  readonly user: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly healthCheck: ServiceHealthCheck | null;
  readonly dependsOn: readonly ServiceDependency[];
  readonly volumes: readonly ServiceVolume[];
  readonly tmpfs: readonly MemoryDirectory[];
  /** Whether it starts again when it has failed. */
  readonly restarts: boolean;
  /** Whether it has a terminal, and an open standard input: a shell without a command then stays. */
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Whether it has a first process that ends with its command and takes in orphans. */
  readonly init: boolean;
  /** The capabilities that it does without, without `CAP_`; `ALL` for all. */
  readonly dropped: readonly string[];
  readonly ulimits: readonly Ulimit[];
  readonly cpus: number;
  readonly memoryMb: number;
  readonly sharedMemoryMb: number;
}

/** Files that are in a service's container before it starts. */
export interface ServiceFiles {
  readonly tree: FileTree;
  /** The absolute directory, or the directory of the one file. */
  readonly at: string;
}

/** A service as a task describes it. Its image is the sandbox's own, one by name, or one to build. */
export interface TaskService extends ServiceSettings {
  readonly image: 'main' | ImageName | (BuildContext & Pick<ImageName, 'image'>);
  readonly files: readonly ServiceFiles[];
  /** Further files, each with a variable of the host in Harbor's form, until the host fills them. */
  readonly hostFiles: readonly { readonly target: string; readonly value: string }[];
}

/** Places one file, whose path says how it is called. */
export function fileAt(target: string, entry: FileEntry): ServiceFiles {
  const at = target.lastIndexOf('/');
  return { tree: new Map([[target.slice(at + 1), entry]]), at: target.slice(0, at) || '/' };
}

/** A file that every account may read. */
export const readableFile = (text: string): FileEntry => ({ mode: 0o444, bytes: Buffer.from(text) });

/** A service whose image is prepared. */
export interface SandboxService extends ServiceSettings {
  readonly image: string;
  readonly files: readonly ServiceFiles[];
}

/** The containers beside a sandbox, and what it has in common with them. */
export interface Beside<One extends ServiceSettings = SandboxService> {
  readonly services: readonly One[];
  /** Names by which the services reach the sandbox itself. */
  readonly names: readonly string[];
  /** Volumes of services that the sandbox has, too. */
  readonly volumes: readonly ServiceVolume[];
}

/** Returns the names of the services beside a sandbox. */
export const namesBeside = (beside: Beside<ServiceSettings> | null): readonly string[] =>
  (beside?.services ?? []).flatMap(({ name, aliases }) => [name, ...aliases]);

/** Returns the images of services other than the sandbox's own. */
export const imagesBeside = (beside: Beside<TaskService> | null) =>
  (beside?.services ?? []).flatMap(({ image }) => (image === 'main' ? [] : [image]));
