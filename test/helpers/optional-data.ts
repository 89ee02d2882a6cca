import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './sources.ts';

/** The folder beside the checkout that may hold data and programs which are too large, or not temper's, to be committed. */
const folder = join(repositoryRoot, '../shared');

/** The optional data that tests and benchmarks know. Tests of `*.data.test.ts` are left out where it is missing. */
export const optionalData = {
  /** Chat templates as their models publish them, in one JSON file. */
  chatTemplates: join(folder, 'data/chat-templates.json'),
  /** A pack of real tasks in Harbor layout. */
  taskPack: join(folder, 'data/tasks-visible.tar.gz'),
  /** Tasks in terminal-bench's format as their sets publish them. */
  publishedTasks: join(folder, 'data/tasks-wild.tar.gz'),
  /** The program that starts a real Kubernetes cluster on this machine. */
  referenceKubernetes: join(folder, 'reference-kubernetes/stack'),
  /** The program that starts a real vLLM and SkyRL. */
  referenceStack: join(folder, 'reference-stack/stack'),
} as const;

/** Returns whether the data of `*.data.test.ts` is there, or names what is missing. */
export function optionalDataAvailability(): { usable: true } | { usable: false; reason: string } {
  const { chatTemplates, taskPack, publishedTasks } = optionalData;
  const missing = [chatTemplates, taskPack, publishedTasks].filter((path) => !existsSync(path));
  if (missing.length === 0) return { usable: true };
  return { usable: false, reason: `this machine lacks ${missing.join(' and ')}` };
}
