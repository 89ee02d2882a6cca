import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { harborFiles, script, text } from '../../harbor/harbor-files.ts';
import { environmentFile, environmentTask } from '../../openenv/environments/environment-task.ts';
import type { FileTree } from '../../sandbox/file-tree.ts';
import type { DataSet, DataSetFormat, DataSetOptions, TaskDraft } from '../data-set.ts';

const maxTasks = 100_000;
const { environment, reward } = environmentTask.shape;

/** A file that makes tasks of an OpenEnv environment: one for each of its seeds, or for each list of arguments of a reset. */
const shape = z
  .strictObject({
    environment,
    instruction: z.string({ error: 'expected a text for the agent' }).min(1),
    image: z.string().min(1).optional(),
    seeds: z.int().min(1).max(maxTasks).optional(),
    resets: z.array(z.record(z.string(), z.unknown())).min(1).max(maxTasks).optional(),
    reward,
  })
  .refine(({ seeds, resets }) => (seeds === undefined) !== (resets === undefined), {
    error: 'expected seeds, a number, or resets, a list; give one of the two',
  });
type OpenEnvFile = z.output<typeof shape>;

/** The tests only pass on the reward that the gateway has recorded; without one the agent has played nothing. */
const test = `#!/bin/sh
mkdir -p /logs/verifier
if [ -f /tests/answer.txt ]; then cat /tests/answer.txt; else echo 0; fi > /logs/verifier/reward.txt
`;

/** openenv: a JSON file that names an OpenEnv environment of `environments.json`, whose episodes become tasks. */
export const openenv: DataSetFormat = {
  wants: (path) => path.endsWith('.openenv.json'),
  async open({ paths, options }) {
    const files = await Promise.all(paths.map(async (path) => ({ path, file: await read(path) })));
    return dataSetOf(files, options);
  },
};

async function read(path: string): Promise<OpenEnvFile> {
  const refuse = (why: string): TemperFailure => new TemperFailure('MalformedTask', `${path}: ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw refuse(`expected a JSON file with an environment: ${errorMessage(error)}`);
  }
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refuse(parsed.error.issues.map((issue) => `${issue.path.join('.') || 'file'}: ${issue.message}`).join('; '));
}

function dataSetOf(files: readonly { path: string; file: OpenEnvFile }[], options: DataSetOptions): DataSet {
  const drafts = new Map<string, TaskDraft>();
  for (const { path, file } of files) {
    const resets = file.resets ?? Array.from({ length: file.seeds ?? 0 }, (_, seed) => ({ seed }));
    for (const [index, reset] of resets.entries()) {
      const id = `${file.environment}-${index}`;
      if (drafts.has(id)) {
        throw new TemperFailure('MalformedTask', `${path}: expected one file for the environment ${file.environment}`);
      }
      drafts.set(id, { id, files: async () => filesOf(path, file, { reset, options }) });
    }
  }
  const ids = [...drafts.keys()];
  return {
    async *tasks() {
      yield* drafts.values();
    },
    ids: async () => ids,
    find: async (id) => drafts.get(id) ?? null,
  };
}

function filesOf(
  path: string,
  { environment: named, instruction, image: own, reward: rule }: OpenEnvFile,
  { reset, options }: { readonly reset: Readonly<Record<string, unknown>>; readonly options: DataSetOptions },
): FileTree {
  const image = own ?? options.image;
  if (image === undefined) {
    throw new TemperFailure(
      'MalformedTask',
      `${path}: image: expected an image with a shell, got nothing; name one there, or with ?image=`,
    );
  }
  const played = { environment: named, reset, reward: rule };
  return harborFiles({
    instruction: `${instruction.trimEnd()}\n\nUse the tool \`environment\`: first without an action, then with one action in each call, until it says that the episode is over.`,
    image,
    workdir: '/workspace',
    workspace: new Map([['README.md', text('The task is played with the tool `environment`.\n')]]),
    tests: new Map([['test.sh', script(test)]]),
    hostTools: ['environment'],
    toolFiles: new Map([[environmentFile, text(JSON.stringify(played))]]),
  });
}
