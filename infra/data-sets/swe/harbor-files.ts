import { stringify } from 'smol-toml';
import { literally } from '../../grading/protection/patterns.ts';
import type { FileEntry, FileTree } from '../../sandbox/files.ts';
import { type GradingFile, gradingFile } from '../../tasks/harbor/grading.ts';

/** What a task of any data set is made of. */
export interface TaskParts {
  readonly instruction: string;
  /** By its name; or what it is built from: a `Dockerfile`, and the files beside it. */
  readonly image: string | FileTree;
  readonly workdir: string;
  readonly remove?: readonly string[];
  readonly setup?: readonly string[];
  /** Commands that gather hidden tests in an evaluation (see `HarborTask`). */
  readonly hiddenTests?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly agentTimeoutSec?: number;
  readonly evaluationTimeoutSec?: number;
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly diskMb?: number;
  /** Files at the base commit, where the image brings none. */
  readonly workspace?: FileTree;
  readonly tests: FileTree;
  readonly solution?: FileTree;
  readonly grading?: GradingFile;
  /** The tests are part of the repository: they and their configuration are taken from the base commit. */
  readonly testsInRepository?: true;
  /** More files that are, by their very names. */
  readonly protectedFiles?: readonly string[];
}

/** The directory in Harbor layout that such a task is. */
export function harborFiles(parts: TaskParts): FileTree {
  const toml = stringify({
    version: '1.0',
    ...(parts.agentTimeoutSec !== undefined && { agent: { timeout_sec: parts.agentTimeoutSec } }),
    ...(parts.evaluationTimeoutSec !== undefined && { verifier: { timeout_sec: parts.evaluationTimeoutSec } }),
    environment: {
      ...(typeof parts.image === 'string' && { docker_image: parts.image }),
      workdir: parts.workdir,
      ...(parts.remove !== undefined && { remove: [...parts.remove] }),
      setup: [...(parts.setup ?? [])],
      ...(parts.hiddenTests !== undefined && parts.hiddenTests.length > 0 && { hidden_tests: [...parts.hiddenTests] }),
      ...(parts.env !== undefined && Object.keys(parts.env).length > 0 && { env: { ...parts.env } }),
      ...(parts.cpus !== undefined && { cpus: parts.cpus }),
      ...(parts.memoryMb !== undefined && { memory_mb: parts.memoryMb }),
      ...(parts.diskMb !== undefined && { storage_mb: parts.diskMb }),
    },
    ...(parts.testsInRepository && {
      grading: { tests_in_repository: true, protected: (parts.protectedFiles ?? []).map(literally) },
    }),
  });
  return new Map([
    ['task.toml', text(toml)],
    ['instruction.md', text(`${parts.instruction.trimEnd()}\n`)],
    ...(typeof parts.image === 'string' ? [] : below('environment', parts.image)),
    ...below('environment/workspace', parts.workspace),
    ...below('tests', parts.tests),
    ...below('solution', parts.solution),
    ...(parts.grading === undefined ? [] : [[gradingFile, text(JSON.stringify(parts.grading))] as const]),
  ]);
}

export const text = (content: string): FileEntry => ({ mode: 0o644, bytes: Buffer.from(content) });
export const script = (content: string): FileEntry => ({ mode: 0o755, bytes: Buffer.from(content) });

export const below = (directory: string, tree: FileTree = new Map()) =>
  [...tree].map(([path, entry]) => [`${directory}/${path}`, entry] as const);

/** A word of a shell command, whatever it holds. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** The reward is whether the command before it succeeded: for tests whose exit code is their verdict. */
export const rewardOfExitCode = `passed=$?
mkdir -p /logs/verifier
if [ $passed -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
exit 0
`;
