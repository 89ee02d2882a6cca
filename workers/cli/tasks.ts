import { resolve } from 'node:path';
import { Command } from 'commander';
import { type HomeOption, runningConfigOf, stackCommand } from './command.ts';
import { note, print, printJson, table } from './output.ts';

interface TasksOptions extends HomeOption {
  readonly json?: true;
}

export function tasksCommand(): Command {
  const list = stackCommand('list', 'Lists the tasks of a set', 'temper tasks list generated:test/1?count=4')
    .argument('<set>', 'a task set that ends, or a directory')
    .option('--json', 'one JSON object per task on stdout')
    .action(listTasks);
  const add = stackCommand(
    'add',
    'Packs a directory of tasks in Harbor layout into the store and prints the address of the set',
    'temper tasks add ./tasks',
  )
    .argument('<dir>', 'a task directory, or a directory of them')
    .option('--json', 'one JSON object on stdout')
    .action(addTasks);
  return new Command('tasks').description('Looks at and adds tasks').addCommand(list).addCommand(add);
}

async function listTasks(named: string, options: TasksOptions): Promise<void> {
  const { source } = await openTasks(named, options);
  for (const address of await source.tasks.list(source.set)) {
    const { id, bundle, image } = await source.tasks.resolve(address);
    if (options.json) printJson({ id, address, image, bundle });
    else print(`${address}  ${id}  ${image}`);
  }
}

/** The set is a blob itself: a list of addresses of blobs, which every host can read. */
async function addTasks(directory: string, options: TasksOptions): Promise<void> {
  const { source, store } = await openTasks(resolve(directory), options);
  const added: { readonly id: string; readonly address: string }[] = [];
  for (const address of await source.tasks.list(source.set)) {
    const { id, bundle } = await source.tasks.resolve(address);
    added.push({ id, address: `blob:${bundle.digest}` });
  }
  const { digest } = await store.putJson(added.map(({ address }) => address));
  const set = `blob:${digest}`;
  if (options.json) return printJson({ set, tasks: added });
  note(
    table(
      ['task', 'address'],
      added.map(({ id, address }) => [id, address]),
    ),
  );
  print(set);
}

async function openTasks(named: string, options: TasksOptions) {
  const { createTasks } = await import('../../infra/tasks/tasks.ts');
  const { createFileStore } = await import('../../infra/store/files.ts');
  const config = await runningConfigOf(options);
  const store = createFileStore(config.paths.store);
  const isAddress = /^(generated|harbor|blob):/.test(named);
  const directory = resolve(named);
  const roots = isAddress ? config.taskRoots : [directory];
  return { store, source: { tasks: createTasks({ store, roots }), set: isAddress ? named : `harbor:${directory}` } };
}
