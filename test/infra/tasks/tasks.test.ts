import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

let home = '';
let tasks: Tasks;
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'temper-tasks-'));
  for (const name of ['one', 'two', 'three']) {
    const directory = join(home, 'roots/pack', name);
    await mkdir(join(directory, 'tests'), { recursive: true });
    await writeFile(join(directory, 'task.toml'), '[environment]\ndocker_image = "x"\n');
    await writeFile(join(directory, 'instruction.md'), `Task ${name}.\n`);
    await writeFile(join(directory, 'tests/test.sh'), 'true\n', { mode: 0o755 });
  }
  await mkdir(join(home, 'outside'));
  await symlink(join(home, 'outside'), join(home, 'roots/escape'));
  tasks = createTasks({
    store: createFileStore(join(home, 'store')),
    roots: [join(home, 'roots')],
    dataSets: { directory: join(home, 'cache'), offline: true },
  });
});
after(() => rm(home, { recursive: true }));

const unknown = (message: RegExp) => (error: unknown) =>
  error instanceof TemperFailure && error.type === 'UnknownTask' && message.test(error.message)
    ? true
    : assert.fail(`expected UnknownTask ${message}, got ${error}`);

it('resolves an address twice to the same bundle, and opens its files', async () => {
  const address = 'generated:train/7/12';
  const task = await tasks.resolve(address);
  assert.deepEqual(await tasks.resolve(address), task);
  const { tests, solution, workspace, instruction } = await tasks.open(task);
  assert.match(instruction, /^Fix \w+ in \w+\.js: it must return the \w+\.\n$/);
  assert.equal(tests.get('test.sh')?.mode, 0o755);
  assert.equal(workspace.size, 3);
  assert.ok(solution.has('solve.sh'));
});

it('resolves a task directory below a root, and finds the packed task by its digest', async () => {
  const task = await tasks.resolve(`harbor:${home}/roots/pack/two`);
  assert.equal(task.id, 'two');
  const again = await tasks.resolve(`blob:${task.bundle.digest}`);
  assert.deepEqual({ ...again, id: 'two' }, task);
  const named = `blob:${task.bundle.digest}#two`;
  assert.deepEqual(await tasks.resolve(named), task);
  assert.deepEqual(await tasks.list(named), [named]);
});

it('makes the agents of a set root by an option of its address', async () => {
  const set = `harbor:${home}/roots/pack?user=root`;
  const [first = ''] = await tasks.list(set);
  assert.equal(first, `harbor:${home}/roots/pack/one?user=root`);
  const [asRoot, plain] = await Promise.all([tasks.resolve(first), tasks.resolve(first.replace('?user=root', ''))]);
  assert.deepEqual([asRoot.id, asRoot.user, plain.user], ['one', 'root', undefined]);
  // The option is part of the packed files, which an address by their digest names.
  assert.equal((await tasks.resolve(`blob:${asRoot.bundle.digest}#one`)).user, 'root');
  await assert.rejects(tasks.list(`harbor:${home}/roots/pack?user=app`), unknown(/user: expected root, got "app"/));
});

it('rejects a missing task and names those that exist', async () => {
  await assert.rejects(tasks.resolve('generated:dev/1/1'), unknown(/expected generated:train\/<seed>\/<index>.*got/));
  await assert.rejects(tasks.resolve('quixbugs'), unknown(/got "quixbugs"/));
  await assert.rejects(tasks.resolve(`harbor:${home}/roots/pack/four`), unknown(/next to it are one, three, two/));
  await assert.rejects(tasks.resolve(`harbor:${home}/roots/pack`), unknown(/expected one task, got a directory/));
  await assert.rejects(tasks.list('generated:test/1'), unknown(/expected a finite set/));
  const file = `harbor:${home}/roots/pack/one/task.toml`;
  // One after the other: a promise that rejects before it is awaited fails the test.
  for (const read of [tasks.resolve, tasks.list])
    await assert.rejects(read(file), unknown(/task\.toml: expected a directory, got a file/));
});

it('rejects a path that leaves the roots through dots or a link', async () => {
  for (const path of ['outside', 'roots/../outside', 'roots/escape']) {
    await assert.rejects(tasks.resolve(`harbor:${home}/${path}`), unknown(/expected a path below one of/));
  }
  await assert.rejects(tasks.resolve('harbor:/etc/none'), unknown(/no such file or directory$/));
});

const at = (set: string, index: number, seed = 1, leftOut: readonly string[] = []) =>
  tasks.choose({ set, seed, index, leftOut: new Set(leftOut) }).then((choice) => choice?.address);

it('repeats a finite set in full, in another order each time that depends on the seed', async () => {
  const set = `harbor:${home}/roots/pack`;
  const all = await tasks.list(set);
  assert.equal(all.length, 3);
  const rounds = await Promise.all(Array.from({ length: 30 }, (_, index) => at(set, index)));
  assert.deepEqual(rounds.slice(0, 3).toSorted(), all);
  assert.deepEqual(rounds.slice(27).toSorted(), all);
  assert.ok(new Set(Array.from({ length: 10 }, (_, round) => rounds.slice(3 * round, 3 * round + 3).join())).size > 1);
  assert.equal(await at(set, 17), rounds[17]);
  const others = await Promise.all(Array.from({ length: 30 }, (_, index) => at(set, index, 2)));
  assert.notDeepEqual(others, rounds);
  const [left = ''] = all;
  const kept = await Promise.all([0, 1].map((index) => at(set, index, 1, [left])));
  assert.deepEqual(kept.toSorted(), all.slice(1));
});

it('counts the tasks of an endless generated set, and skips those that are left out', async () => {
  assert.equal(await at('generated:train/3', 100_000), 'generated:train/3/100000');
  assert.equal((await tasks.list('generated:test/3?count=64')).length, 64);
  const leftOut = ['generated:train/3/1', 'generated:train/33/0', 'generated:test/3/0'];
  const found = await Promise.all([0, 1, 2].map((index) => at('generated:train/3', index, 1, leftOut)));
  assert.deepEqual(found, ['generated:train/3/0', 'generated:train/3/2', 'generated:train/3/3']);
});

it('lists a set again only after it changed', async () => {
  const digest = (await tasks.resolve('generated:train/7/1')).bundle.digest;
  const blob = await createFileStore(join(home, 'store')).putJson([`blob:${digest}`]);
  const directory = join(home, 'roots/pack');
  await utimes(directory, 1000, 1000);
  const rows = join(home, 'roots/rows.jsonl');
  await writeFile(rows, '{"instance_id":"a"}\n{"instance_id":"b"}\n');
  for (const set of [`harbor:${directory}`, `swe-bench:${rows}`, `blob:${blob.digest}`, 'generated:test/3?count=9']) {
    const all = await tasks.list(set);
    assert.equal(await tasks.list(set), all, set);
    assert.ok(all.length > 0);
  }
  // A directory that changed a moment ago may change again within the same modification time.
  await mkdir(join(directory, 'four'));
  const before = await tasks.list(`harbor:${directory}`);
  await writeFile(join(directory, 'four/task.toml'), '');
  assert.deepEqual([before.length, (await tasks.list(`harbor:${directory}`)).length], [3, 4]);
  await rm(join(directory, 'four'), { recursive: true });
});

it('lists a set whose tasks are in groups, and what is added to a group later', async () => {
  const set = join(home, 'roots/grouped');
  const put = async (path: string): Promise<void> => {
    await mkdir(join(set, path), { recursive: true });
    await writeFile(join(set, path, 'task.toml'), '');
  };
  await Promise.all(['maths/sum', 'physics/optics/lens', 'physics/fall', '.git/hidden'].map(put));
  const listed = async () => (await tasks.list(`harbor:${set}`)).map((one) => one.slice(`harbor:${set}/`.length));
  assert.deepEqual(await listed(), ['maths/sum', 'physics/fall', 'physics/optics/lens']);
  await utimes(set, 1000, 1000);
  await put('maths/product');
  assert.equal((await listed()).length, 4);
  // Beside tasks of its own a set has those of its groups; what is below a task belongs to it.
  await Promise.all(['whole', 'whole/part'].map(put));
  const all = ['maths/product', 'maths/sum', 'physics/fall', 'physics/optics/lens', 'whole'];
  assert.deepEqual(await listed(), all);
  for (const group of ['', 'maths', 'physics', 'physics/optics']) await utimes(join(set, group), 1000, 1000);
  const known = await tasks.list(`harbor:${set}`);
  assert.equal(await tasks.list(`harbor:${set}`), known, 'no group has changed');
  await put('physics/optics/prism');
  assert.equal((await listed()).length, 6);
  await rm(set, { recursive: true });
  await mkdir(join(set, 'empty'), { recursive: true });
  await assert.rejects(tasks.list(`harbor:${set}`), unknown(/neither it nor the directories below it have one/));
});
