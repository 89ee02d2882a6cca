import { readStages } from './dockerfile-stages.ts';
import { written } from './dockerfile-words.ts';
import type { HarborTask } from './harbor-task.ts';

/**
 * Returns the PATH of a task's tests as far as the task says it: in its environment, or by ENV in its Dockerfile. Names of variables
 * that it does not set remain in it. Null if it says nothing, so that the PATH is that of a named image.
 */
export function pathOfTests({ env, testEnv, build }: Pick<HarborTask, 'env' | 'testEnv' | 'build'>): string | null {
  const dockerfile = build?.files.get('Dockerfile');
  const source = dockerfile === undefined ? '' : new TextDecoder().decode(dockerfile.bytes);
  return testEnv.PATH ?? env.PATH ?? pathIn(source);
}

function pathIn(source: string): string | null {
  const { env, args } = [...readStages(source)].at(-1)?.stage ?? {};
  const path = env?.get('PATH') ?? args?.get('PATH');
  return path === undefined ? null : written(path);
}
