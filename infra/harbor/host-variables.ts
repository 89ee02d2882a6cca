import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { hostValueIn } from '../compose/host-value.ts';
import type { TestImage } from '../grading/task.ts';
import { type Beside, fileAt, readableFile, type TaskService } from '../sandbox/service.ts';

/** Variables of the host's environment that tasks may have, by name. */
export type HostVariables = Readonly<Record<string, string>>;

type Variables = Readonly<Record<string, string>>;

interface Environments {
  readonly env: Variables;
  readonly testEnv: Variables;
  readonly solutionEnv: Variables;
  readonly steps: readonly { readonly testEnv: Variables }[];
  readonly testImage: TestImage | null;
  readonly beside: Beside<TaskService> | null;
}

/** Returns the names of the host's variables that a task cannot do without. */
export function neededVariables(task: Environments): readonly string[] {
  const { env, testEnv, solutionEnv, steps, testImage, beside } = task;
  const ofServices = (beside?.services ?? []).flatMap(({ env: own, hostFiles }) => [
    own,
    hostFiles.map(({ value }) => value),
  ]);
  const all = [env, testEnv, solutionEnv, testImage?.env ?? {}, ...steps.map((step) => step.testEnv), ...ofServices];
  const needed = all
    .flatMap((values) => Object.values<string>(values))
    .flatMap((value) => {
      const found = hostValueIn(value);
      return found !== null && found.fallback === undefined ? [found.name] : [];
    });
  return [...new Set(needed)];
}

/**
 * Replaces the host's variables in the environments of a task: by the host's value if tasks may have it, otherwise by the task's
 * default. Throws UnsupportedTask for one that has neither.
 */
export function fillVariables<Files extends Environments>(files: Files, allowed: HostVariables): Files {
  const fill = (variables: Variables): Variables =>
    Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, valueFor(value, allowed)]));
  return {
    ...files,
    env: fill(files.env),
    testEnv: fill(files.testEnv),
    solutionEnv: fill(files.solutionEnv),
    testImage: files.testImage && { ...files.testImage, env: fill(files.testImage.env) },
    steps: files.steps.map((step) => ({ ...step, testEnv: fill(step.testEnv) })),
    beside: files.beside && {
      ...files.beside,
      services: files.beside.services.map((service) => {
        const filled = service.hostFiles.map(({ target, value }) => {
          return fileAt(target, readableFile(valueFor(value, allowed)));
        });
        return { ...service, env: fill(service.env), files: [...service.files, ...filled], hostFiles: [] };
      }),
    },
  };
}

function valueFor(value: string, allowed: HostVariables): string {
  const found = hostValueIn(value);
  if (found === null) return value;
  const { name, fallback } = found;
  const given = Object.hasOwn(allowed, name) ? allowed[name] : fallback;
  if (given !== undefined) return given;
  throw new TemperFailure(
    'UnsupportedTask',
    `env: expected the variable ${name} of this host, which tasks may not have or which is not set here; name it in TEMPER_TASK_VARIABLES of the host workers and set it`,
  );
}
