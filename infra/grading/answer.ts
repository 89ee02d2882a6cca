import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { FileEntry, FileTree } from '../sandbox/file-tree.ts';
import type { Store } from '../store/store.ts';
import type { GradedTask } from './task.ts';

/** The name of the answer beside the tests, and of the reference answer beside the reference solution. */
const answerFile = 'answer.txt';

/** Puts the answer that an agent recorded beside the tests, which judge it. Tests without such a file got no answer. */
export async function withAnswer<Task extends Pick<GradedTask, 'tests'>>(
  store: Store,
  task: Task,
  answer: BlobRef | undefined,
): Promise<Task> {
  const bytes = answer === undefined ? null : await store.get(answer.digest);
  return { ...task, tests: testsWith(task, bytes) };
}

/** Puts the reference answer beside the tests, as if the agent had recorded it. */
export const solutionsAnswer = <Task extends Pick<GradedTask, 'tests' | 'solution'>>(task: Task): Task => ({
  ...task,
  tests: testsWith(task, referenceAnswer(task)),
});

/** The reference answer of a task; null without one. */
export const referenceAnswer = ({ solution }: Pick<GradedTask, 'solution'>): Uint8Array | null =>
  solution.get(answerFile)?.bytes ?? null;

function testsWith({ tests }: Pick<GradedTask, 'tests'>, answer: Uint8Array | null): FileTree {
  if (answer === null) return tests;
  return new Map<string, FileEntry>([...tests, [answerFile, { mode: 0o644, bytes: answer }]]);
}
