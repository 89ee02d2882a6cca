import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { loadProblem } from '../../load-module.ts';
import type { DataSet, DataSetFormat, TaskDraft } from '../data-set.ts';
import type { TaskSource } from '../task-source.ts';

const sourceModule = z.looseObject({
  default: z.looseObject({
    tasks: z.custom<TaskSource['tasks']>((value) => typeof value === 'function', { error: 'expected a function' }),
  }),
});
const draft = z.looseObject({
  id: z.string({ error: 'expected a text' }).min(1, { error: 'expected a text' }),
  files: z.custom<TaskDraft['files']>((value) => typeof value === 'function', { error: 'expected a function' }),
});

/** Tasks that a module of the user's own makes; only commands, which run with the user's own rights, load it. */
export const ownModule: DataSetFormat = {
  runsCode: true,
  wants: () => false,
  async open({ paths }) {
    const [path = ''] = paths;
    return createModuleDataSet(path, await loadSource(path));
  },
};

async function loadSource(path: string): Promise<TaskSource> {
  const imported: unknown = await import(pathToFileURL(path).href).catch((cause: unknown) => {
    throw new TemperFailure('UnknownTask', `${path}: ${loadProblem(cause)}`, { cause });
  });
  const parsed = sourceModule.safeParse(imported);
  if (parsed.success) return parsed.data.default;
  throw new TemperFailure('UnknownTask', `${path}: expected a default export with a function tasks(), got none`);
}

function createModuleDataSet(path: string, source: TaskSource): DataSet {
  const refuse = (problem: string): TemperFailure => new TemperFailure('MalformedTask', `${path}: ${problem}`);

  async function* tasks(): AsyncGenerator<TaskDraft> {
    let number = 0;
    for await (const made of source.tasks()) {
      number += 1;
      const parsed = draft.safeParse(made);
      if (!parsed.success) {
        const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
        throw refuse(`task ${number}: ${problems.join('; ')}`);
      }
      yield { id: parsed.data.id, files: async () => checkedFiles(await parsed.data.files()) };
    }
  }

  const checkedFiles = (files: unknown): Awaited<ReturnType<TaskDraft['files']>> => {
    if (files instanceof Map) return files;
    throw refuse('expected files() to return a Map of files by path, got something else');
  };

  return {
    tasks,
    async ids() {
      const ids: string[] = [];
      for await (const { id } of tasks()) ids.push(id);
      const second = ids.find((id, index) => ids.indexOf(id) !== index);
      if (second !== undefined) throw refuse(`expected a unique id, got ${second} twice`);
      return ids;
    },
    async find(id) {
      for await (const task of tasks()) if (task.id === id) return task;
      return null;
    },
  };
}
