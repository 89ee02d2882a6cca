import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Facility } from './facility.ts';

export interface Selection {
  readonly files: readonly string[];
  /** What this machine can't run, by what it lacks; not the reference suite, which has a command of its own. */
  readonly leftOut: readonly LeftOut[];
}

export interface LeftOut {
  /** Such as `Docker`. */
  readonly needed: string;
  /** Why it is not to be had. */
  readonly reason: string;
  readonly files: readonly string[];
}

/** Files of `npm test`: all of test/, without those that need what this machine lacks. */
export async function selectTests(root: string, facilities: readonly Facility[]): Promise<Selection> {
  const all = (await testFiles(root)).filter((file) => !isReference(file));
  const leftOut = facilities.flatMap(({ name, suffix, availability }): LeftOut[] => {
    if (availability.usable) return [];
    const files = all.filter((file) => file.endsWith(suffix));
    return files.length === 0 ? [] : [{ needed: name, reason: availability.reason, files }];
  });
  const without = new Set(leftOut.flatMap(({ files }) => files));
  return { files: all.filter((file) => !without.has(file)), leftOut };
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
