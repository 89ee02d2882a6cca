import { type RunInput, type RunRequest, runInput } from '../../workflows/contracts/run.ts';

/** The input of a run over the generated tasks. */
export function inputOfRun(request: Partial<RunRequest>): RunInput {
  return runInput.parse({ tasks: 'generated:train/1', ...request });
}
