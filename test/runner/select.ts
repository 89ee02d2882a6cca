import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Need, needsOf } from './need.ts';

export interface Selection {
  readonly files: readonly string[];
  /** The files that this machine cannot run, by what it lacks; without the reference suite, which has its own command. */
  readonly leftOut: readonly SkippedTests[];
}

export interface SkippedTests {
  readonly need: Need;
  /** The reason why the need is not met. */
  readonly reason: string;
  readonly files: readonly string[];
}

/** A suite on a Temporal server on PostgreSQL. It stands for the same suite on a smaller server, whose name lacks the word. */
const onPostgres = '.postgres.test.ts';

/** The suites that `npm test` leaves to commands of their own, by the word in the names of their files. */
export const ownCommands = {
  reference: 'npm run test:reference, against a real engine and trainer',
  deploy: 'npm run test:deploy, which also installs the chart in a cluster',
} as const;

/** Selects the files of `npm test`: all below test/ whose needs this machine meets. */
export async function selectTests(root: string, needs: readonly Need[]): Promise<Selection> {
  const all = (await testFiles(root)).filter((file) => !needsOf(file).some((word) => word in ownCommands));
  const { files: able, leftOut } = ableOf(all, needs);
  const replaced = new Set(able.filter((file) => file.endsWith(onPostgres)).map(withoutPostgres));
  return { files: able.filter((file) => !replaced.has(file)), leftOut };
}

/** Leaves out the files that this machine cannot run. */
function ableOf(all: readonly string[], needs: readonly Need[]): Selection {
  const leftOut = needs.flatMap((need): SkippedTests[] => {
    if (need.availability.usable) return [];
    const files = all.filter((file) => needsOf(file).includes(need.word));
    return files.length === 0 ? [] : [{ need, reason: need.availability.reason, files }];
  });
  const without = new Set(leftOut.flatMap(({ files }) => files));
  return { files: all.filter((file) => !without.has(file)), leftOut };
}

const withoutPostgres = (file: string): string => `${file.slice(0, -onPostgres.length)}.test.ts`;

/** Selects the files of `npm test` that have a need. Those of them that lack another one are named, too. */
export async function selectTestsOf(root: string, needs: readonly Need[], word: string): Promise<Selection> {
  const { files, leftOut } = await selectTests(root, needs);
  const having = (all: readonly string[]): string[] => all.filter((file) => needsOf(file).includes(word));
  return {
    files: having(files),
    leftOut: leftOut.map((one) => ({ ...one, files: having(one.files) })).filter((one) => one.files.length > 0),
  };
}

/** Selects the files of `npm run test:fast`: those that need nothing. */
export async function selectFastTests(root: string): Promise<Selection> {
  return { files: (await testFiles(root)).filter((file) => needsOf(file).length === 0), leftOut: [] };
}

/** Selects the files with one of the words, whose other needs this machine meets: a suite that has a command of its own. */
export async function selectOwnTests(
  root: string,
  needs: readonly Need[],
  words: readonly string[],
): Promise<Selection> {
  return ableOf(
    (await testFiles(root)).filter((file) => needsOf(file).some((word) => words.includes(word))),
    needs,
  );
}

async function testFiles(root: string): Promise<string[]> {
  const names = await readdir(join(root, 'test'), { recursive: true });
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort();
}
