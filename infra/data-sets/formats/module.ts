import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { loadProblem, problemsOf } from '../../load-module.ts';
import type { DataSet, DataSetFormat, TaskDraft } from '../data-set.ts';
import type { TaskSource } from '../task-source.ts';

const sourceModule = z.looseObject({
  default: z.looseObject(
    { tasks: z.custom<TaskSource['tasks']>((value) => typeof value === 'function', { error: 'expected a function' }) },
    { error: 'expected an object with a function tasks()' },
  ),
});
// What was checked is used as it is, since it may be an instance of a class.
const sourceOf = z.looseObject({ default: z.custom<TaskSource>() });
const draftOf = z.custom<TaskDraft>();
const text = z.string({ error: 'expected a text' }).min(1, { error: 'expected a text' });
const draft = z.looseObject(
  {
    id: text,
    files: z.custom<TaskDraft['files']>((value) => typeof value === 'function', { error: 'expected a function' }),
  },
  { error: 'expected id and files' },
);
const tree = z.map(
  text,
  z.looseObject(
    {
      mode: z.int({ error: 'expected permission bits' }),
      bytes: z.instanceof(Uint8Array, { error: 'expected bytes' }),
    },
    { error: 'expected mode and bytes' },
  ),
  { error: 'expected a Map of files by path' },
);

/** Tasks that a module of the user's own makes; only commands, which run with the user's own rights, load it. */
export const ownModule: DataSetFormat = {
  runsCode: true,
  mayKeepProcesses: true,
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
  if (parsed.success) return sourceOf.parse(imported).default;
  throw new TemperFailure('UnknownTask', `${path}: ${problemsOf(parsed.error)}`);
}

function createModuleDataSet(path: string, source: TaskSource): DataSet {
  const refuse = (problem: string): TemperFailure => new TemperFailure('MalformedTask', `${path}: ${problem}`);
  const failed = (what: string, cause: unknown): TemperFailure =>
    cause instanceof TemperFailure ? cause : refuse(`${what} failed: ${errorMessage(cause)}`);

  async function* made(): AsyncGenerator<unknown> {
    try {
      const tasks: unknown = await source.tasks();
      if (!isIterable(tasks)) throw refuse('expected tasks() to return a list of tasks or to yield them');
      yield* tasks;
    } catch (cause) {
      throw failed('tasks()', cause);
    }
  }

  async function* tasks(): AsyncGenerator<TaskDraft> {
    let number = 0;
    for await (const one of made()) {
      number += 1;
      const parsed = draft.safeParse(one);
      if (!parsed.success) throw refuse(`task ${number}: ${problemsOf(parsed.error)}`);
      const task = draftOf.parse(one);
      yield { id: parsed.data.id, files: () => filesOf(task) };
    }
  }

  async function filesOf(task: TaskDraft): ReturnType<TaskDraft['files']> {
    const given: unknown = await Promise.resolve()
      .then(() => task.files())
      .catch((cause: unknown) => {
        throw failed('files()', cause);
      });
    const parsed = tree.safeParse(given);
    if (parsed.success) return parsed.data;
    throw refuse(`files(): ${problemsOf(parsed.error)}`);
  }

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

const isIterable = (value: unknown): value is Iterable<unknown> | AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value);
