import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { FileEntry, FileTree } from '../sandbox/file-tree.ts';
import type { Store } from '../store/store.ts';
import type { GradedTask } from './task.ts';

/** The name of the answer beside the tests, and of the reference answer beside the reference solution. */
const answerFile = 'answer.txt';

/** The files of a task with the answer to it, and without it if it is the agent's own. */
export interface AnsweredFiles<Files> {
  readonly files: Files;
  readonly ownFiles: Files;
}

/**
 * Puts the answer that an agent recorded beside the tests, which judge it. Tests without such a file got no answer. The rewards of
 * an OpenEnv environment are an answer that the agent has not written: the task is to blame if they are invalid.
 */
export async function withAnswer<Files extends Pick<GradedTask, 'tests'>>(
  store: Store,
  { hostTools = [] }: Pick<Task, 'hostTools'>,
  own: Files,
  answer: BlobRef | undefined,
): Promise<AnsweredFiles<Files>> {
  const bytes = answer === undefined ? null : await store.get(answer.digest);
  const files = { ...own, tests: testsWith(own, bytes) };
  return { files, ownFiles: hostTools.includes('environment') ? files : own };
}

/** Puts the reference answer beside the tests, as if the agent had recorded it. */
export const solutionsAnswer = <Files extends Pick<GradedTask, 'tests' | 'solution'>>(files: Files): Files => ({
  ...files,
  tests: testsWith(files, referenceAnswer(files)),
});

/** The reference answer of a task; null without one. */
export const referenceAnswer = ({ solution }: Pick<GradedTask, 'solution'>): Uint8Array | null =>
  solution.get(answerFile)?.bytes ?? null;

function testsWith({ tests }: Pick<GradedTask, 'tests'>, answer: Uint8Array | null): FileTree {
  if (answer === null) return tests;
  return new Map<string, FileEntry>([...tests, [answerFile, { mode: 0o644, bytes: answer }]]);
}
