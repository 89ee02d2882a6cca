import type { EvaluationRequest } from '../../workflows/contracts/evaluation.ts';
import { sha256 } from '../store/files.ts';

/** Returns a digest of what a verdict is about. */
export function subjectOf({
  diff,
  task,
  answer,
  snapshot,
}: Pick<EvaluationRequest, 'diff' | 'task' | 'answer' | 'snapshot'>): string {
  const step = task.step === undefined ? [] : [`step ${task.step}`];
  const others = [...step, ...(answer ? [answer.digest] : []), ...(snapshot?.parts ?? [])];
  return sha256([diff.patch.digest, task.bundle.digest, task.image, ...others].join('\n'));
}
