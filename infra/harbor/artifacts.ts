import { posix } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { TaskToml } from './task-toml.ts';
import { hasSeparateTests } from './test-environment.ts';

/*
 * The artifacts of a task: files of the agent's sandbox that its author keeps.
 */

/** The files that a task keeps, at its end and after each of its steps. */
const artifactsOf = ({ artifacts, steps }: TaskToml) => [...artifacts, ...steps.flatMap((step) => step.artifacts)];

/** The paths of those in the sandbox itself. */
const pathsOf = (toml: TaskToml): readonly string[] =>
  artifactsOf(toml).flatMap(({ source, service }) => (service === 'main' ? [source] : []));

/** Returns the paths of artifacts for tests that get nothing else. Throws UnsupportedTask for those of a service. */
function neededPaths(toml: TaskToml): readonly string[] {
  const other = artifactsOf(toml).find(({ service }) => service !== 'main');
  if (other === undefined) return pathsOf(toml);
  throw new TemperFailure(
    'UnsupportedTask',
    `task.toml: artifacts: expected files of the service main, since the tests would not get those of another, got ${other.source} of ${other.service}; have the service write it into a volume that main has, too`,
  );
}

/** The directory of Harbor's own convention, whose files are kept for people to look at. */
const conventionalArtifacts = '/logs/artifacts';

const isBelow = (path: string, directory: string): boolean => `${path}/`.startsWith(`${directory.replace(/\/$/, '')}/`);

const isInside = (path: string, workdir: string): boolean =>
  isBelow(path, workdir) || isBelow(path, conventionalArtifacts);

/** The files that tests in an image of their own get: those that the task names, and those of Harbor's own convention. */
export const artifactsFor = (toml: TaskToml, workdir: string): readonly string[] => [
  ...new Set([conventionalArtifacts, ...neededPaths(toml).map((path) => posix.resolve(workdir, path))]),
];

/**
 * Rejects tests in an environment of their own that would miss something there. A fresh sandbox with the diff of the workdir is
 * such an environment, as far as the artifacts that it is meant to get are in the workdir.
 */
export function requireSeparable(toml: TaskToml, workdir: string): void {
  const { grading } = toml;
  if (!hasSeparateTests(toml)) return;
  if (grading.sandbox === 'same') {
    throw new TemperFailure(
      'MalformedTask',
      'task.toml: expected no grading.sandbox = "same", since verifier.environment_mode is separate, got it',
    );
  }
  const outside = neededPaths(toml).find((path) => path.startsWith('/') && !isBelow(path, workdir));
  if (grading.sandbox === 'snapshot' || outside === undefined) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `task.toml: artifacts: expected paths in the workdir ${workdir}, whose files alone a separate environment of the tests gets, or [grading] sandbox = "snapshot", got ${outside}`,
  );
}

/** Whether a task keeps files outside the workdir, which a fresh sandbox of its tests does not have. */
export const keepsOutside = (toml: TaskToml, workdir: string): boolean =>
  pathsOf(toml).some((path) => path.startsWith('/') && !isInside(path, workdir));
