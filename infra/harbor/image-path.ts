import { instructions } from './dockerfile.ts';
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
  const stages = new Map<string, ReadonlyMap<string, string>>();
  let values = new Map<string, string>();
  let stage = '';
  for (const { keyword, rest } of instructions(source)) {
    if (keyword === 'FROM') {
      stages.set(stage, values);
      const [image = '', , name = ''] = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
      values = new Map(stages.get(image.toLowerCase()));
      stage = name.toLowerCase();
    } else if (keyword === 'ENV' || keyword === 'ARG') {
      for (const [name, value] of variablesIn(rest)) {
        const known = values;
        const read = value.replace(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced, plain) => known.get(braced ?? plain) ?? all);
        values.set(name, read);
      }
    }
  }
  return values.get('PATH') ?? null;
}

/** Reads `NAME=value OTHER="value"` or, in the old form, `NAME value`. */
function variablesIn(rest: string): readonly (readonly [string, string])[] {
  const [, old, value = ''] = /^(\w+)\s+(\S.*)$/s.exec(rest) ?? [];
  if (old !== undefined) return [[old, value]];
  return [...rest.matchAll(/(\w+)=("[^"]*"|'[^']*'|\S*)/g)].map(([, name = '', quoted = '']) => [
    name,
    quoted.replace(/^(["'])(.*)\1$/s, '$2'),
  ]);
}
