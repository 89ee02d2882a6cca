import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DockerState } from './docker.ts';

export interface Selection {
  readonly files: readonly string[];
  /** Left out because Docker can't serve them; not the reference suite, which has a command of its own. */
  readonly leftOut: readonly string[];
}

/** Files of `npm test`: all of test/, without those that need what this machine lacks. */
export async function selectTests(root: string, docker: DockerState): Promise<Selection> {
  const files = (await testFiles(root)).filter((file) => !isReference(file));
  const needsDocker = (file: string): boolean => file.endsWith('.docker.test.ts');
  return docker.usable
    ? { files, leftOut: [] }
    : { files: files.filter((file) => !needsDocker(file)), leftOut: files.filter(needsDocker) };
}

/** The suite that runs on both stacks, ours and the reference one. */
export async function referenceTests(root: string): Promise<readonly string[]> {
  return (await testFiles(root)).filter(isReference);
}

const isReference = (file: string): boolean => file.endsWith('.reference.test.ts');

async function testFiles(root: string): Promise<string[]> {
  const names = await readdir(join(root, 'test'), { recursive: true });
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort();
}
