import { stringify } from 'smol-toml';
import type { HostEntry, Ulimit } from '../../workflows/contracts/task.ts';
import type { AskedMemory } from '../compose/memory.ts';
import { escapePattern } from '../grading/protection/patterns.ts';
import type { FileEntry, FileTree } from '../sandbox/files.ts';
import { type GradingFile, gradingFile } from './grading-file.ts';

/** The parts of a task of any data set. */
export interface TaskParts {
  readonly instruction: string;
  /** The name of the image, or the files to build it from: a `Dockerfile` and its context. */
  readonly image: string | FileTree;
  /** More files of `environment/`, of services beside the sandbox. */
  readonly environment?: FileTree | undefined;
  readonly workdir: string;
  /** Absolute paths to delete from the image. */
  readonly remove?: readonly string[];
  /** Shell commands to run in the workdir before the base commit is made. */
  readonly setup?: readonly string[];
  /** Shell commands that collect hidden tests in an evaluation (see `HarborTask`). */
  readonly hiddenTests?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The command that runs for as long as a sandbox, in place of the image's entry point. */
  readonly entrypoint?: readonly string[] | undefined;
  readonly agentTimeoutSec?: number;
  /** Set when agent and tests are root of their container. */
  readonly user?: 'root' | undefined;
  readonly evaluationTimeoutSec?: number;
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly diskMb?: number;
  /** The directories in memory and the shared memory of its sandbox. */
  readonly memory?: AskedMemory;
  /** The further names of hosts that its sandbox knows, and the limits of its processes. */
  readonly hosts?: readonly HostEntry[];
  readonly ulimits?: readonly Ulimit[];
  /** The files of the workdir, when the image does not contain them. */
  readonly workspace?: FileTree;
  readonly tests: FileTree;
  /** The names of the host tools that the agent needs. */
  readonly hostTools?: readonly string[];
  /** The files for these tools, which no sandbox gets. */
  readonly toolFiles?: FileTree;
  readonly solution?: FileTree;
  readonly grading?: GradingFile;
  /** Set when the tests are part of the repository: they and their configuration are taken from the base commit. */
  readonly testsInRepository?: true;
  /** Literal paths of more files that are taken from the base commit. */
  readonly protectedFiles?: readonly string[];
  /** Patterns of more paths that an agent's diff must not change. */
  readonly protectedPaths?: readonly string[];
  /** The sandbox of the tests, where that is not the default of the task's layout. */
  readonly gradedIn?: 'fresh' | 'same' | 'snapshot' | undefined;
  /** Whether processes that the agent started continue during those tests. */
  readonly keepProcesses?: boolean;
  /** Set when the tests write in the workdir, which is otherwise the agent's. */
  readonly ownWorkdir?: true;
}

/** Writes the directory of a task in Harbor layout. */
export function harborFiles(parts: TaskParts): FileTree {
  const toml = stringify({
    version: '1.0',
    ...agentTable(parts),
    ...(parts.evaluationTimeoutSec !== undefined && { verifier: { timeout_sec: parts.evaluationTimeoutSec } }),
    environment: {
      ...(typeof parts.image === 'string' && { docker_image: parts.image }),
      workdir: parts.workdir,
      ...(parts.remove !== undefined && { remove: [...parts.remove] }),
      ...(parts.entrypoint !== undefined && { entrypoint: [...parts.entrypoint] }),
      setup: [...(parts.setup ?? [])],
      ...(parts.hiddenTests !== undefined && parts.hiddenTests.length > 0 && { hidden_tests: [...parts.hiddenTests] }),
      ...(parts.env !== undefined && Object.keys(parts.env).length > 0 && { env: { ...parts.env } }),
      ...(parts.cpus !== undefined && { cpus: parts.cpus }),
      ...(parts.memoryMb !== undefined && { memory_mb: parts.memoryMb }),
      ...(parts.diskMb !== undefined && { storage_mb: parts.diskMb }),
      ...memoryFields(parts.memory),
      ...tablesOf('hosts', parts.hosts),
      ...tablesOf('ulimits', parts.ulimits),
    },
    ...gradingTable(parts),
    ...(parts.hostTools !== undefined && { tools: { host: [...parts.hostTools] } }),
  });
  return new Map([
    ['task.toml', text(toml)],
    ['instruction.md', text(`${parts.instruction.trimEnd()}\n`)],
    ...(typeof parts.image === 'string' ? [] : prefixed('environment', parts.image)),
    ...prefixed('environment', parts.environment),
    ...prefixed('environment/workspace', parts.workspace),
    ...prefixed('tests', parts.tests),
    ...prefixed('solution', parts.solution),
    ...prefixed('tools', parts.toolFiles),
    ...(parts.grading === undefined ? [] : [[gradingFile, text(JSON.stringify(parts.grading))] as const]),
  ]);
}

function memoryFields({ sharedMemoryMb, tmpfs }: AskedMemory = { sharedMemoryMb: null, tmpfs: [] }) {
  const directories = tmpfs.map(({ path, sizeMb }) => ({
    path,
    ...(sizeMb !== null && { size_mb: Math.max(1, sizeMb) }),
  }));
  return {
    ...(sharedMemoryMb !== null && sharedMemoryMb > 0 && { shared_memory_mb: sharedMemoryMb }),
    ...(directories.length > 0 && { tmpfs: directories }),
  };
}

const tablesOf = (field: string, tables: readonly object[] = []) =>
  tables.length === 0 ? {} : { [field]: tables.map((one) => ({ ...one })) };

function agentTable({ agentTimeoutSec, user }: TaskParts) {
  const agent = { ...(agentTimeoutSec !== undefined && { timeout_sec: agentTimeoutSec }), ...(user && { user }) };
  return Object.keys(agent).length === 0 ? {} : { agent };
}

function gradingTable(parts: TaskParts) {
  const { testsInRepository, protectedFiles = [], protectedPaths = [], ownWorkdir, gradedIn, keepProcesses } = parts;
  const paths = [...protectedFiles.map(escapePattern), ...protectedPaths];
  const grading = {
    ...(testsInRepository && { tests_in_repository: testsInRepository }),
    ...((testsInRepository || paths.length > 0) && { protected: paths }),
    ...(ownWorkdir && { own_workdir: ownWorkdir }),
    ...(gradedIn && { sandbox: gradedIn }),
    ...(keepProcesses && { keep_processes: keepProcesses }),
  };
  return Object.keys(grading).length === 0 ? {} : { grading };
}

export const text = (content: string): FileEntry => ({ mode: 0o644, bytes: Buffer.from(content) });
export const script = (content: string): FileEntry => ({ mode: 0o755, bytes: Buffer.from(content) });

const prefixed = (directory: string, tree: FileTree = new Map()) =>
  [...tree].map(([path, entry]) => [`${directory}/${path}`, entry] as const);
