import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { pathsBelow } from '../../../infra/paths.ts';
import { tryLock } from '../../../infra/process/file-lock.ts';
import { cachedVerdicts } from '../../../infra/retention/categories/cached-verdicts.ts';
import { caches } from '../../../infra/retention/categories/caches.ts';
import { checkpoints } from '../../../infra/retention/categories/checkpoints.ts';
import { database } from '../../../infra/retention/categories/database.ts';
import { demoHomes } from '../../../infra/retention/categories/demo-homes.ts';
import { journals } from '../../../infra/retention/categories/journals.ts';
import { logs } from '../../../infra/retention/categories/logs.ts';
import { starts, trainerJournals } from '../../../infra/retention/categories/records.ts';
import { type Category, dayMs, type RetentionContext } from '../../../infra/retention/category.ts';
import { collect } from '../../../infra/retention/collect.ts';
import { createKnowledge } from '../../../infra/retention/knowledge.ts';
import { createDirectory } from '../../../infra/store/directory.ts';

describe('retention without references', () => {
  let home: string;
  let context: RetentionContext;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-retention-'));
    context = {
      paths: pathsBelow(home),
      objects: createDirectory(home),
      cacheDir: join(home, 'cache'),
      checkpoints: join(home, 'policy/checkpoints'),
      nowMs: Date.now(),
      cutoffMs: null,
      graceMs: dayMs,
      knowledge: {
        ...createKnowledge(() => Promise.reject(new Error('the server is away'))),
        pinnedVersions: async () => new Set([4]),
      },
      signal: new AbortController().signal,
      note: () => undefined,
    };
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  async function file(path: string, ageDays: number, text = 'some text'): Promise<string> {
    const full = join(home, path);
    await mkdir(dirname(full), { recursive: true });
    await writeFile(full, text);
    const time = (Date.now() - ageDays * dayMs) / 1000;
    await utimes(full, time, time);
    return full;
  }

  /** Makes a dry run and then a real one; both must name the same entries, which it returns. */
  async function collected(category: Category): Promise<readonly string[]> {
    const pass = async (dryRun: boolean) => {
      const names: string[] = [];
      const onEntry = (_: string, { name }: { readonly name: string }): void => void names.push(name);
      const reports = await collect(home, [category], context, { dryRun, limitMs: 60_000, onEntry });
      assert.ok(!('holder' in reports));
      assert.equal(reports[0]?.skipped, null);
      assert.equal(reports[0]?.removed, names.length);
      return names.sort();
    };
    const wouldGo = await pass(true);
    assert.deepEqual(await pass(false), wouldGo);
    assert.deepEqual(await pass(false), [], 'expected a second pass to find nothing');
    return wouldGo;
  }

  it('removes the start of a run whose records are gone and that is not open, with an age alone', async () => {
    await file('starts/00/kept-0/kept-key.json', 9);
    await file('runs/kept-key/group-0.json', 9);
    await file('starts/00/open-0/open-key.json', 9);
    await file('starts/00/new-0/new-key.json', 1);
    await file('starts/00/gone-0/gone-key.json', 9);
    assert.deepEqual(await collected(starts), []);
    const openKeys = async () => new Set(['open-key']);
    context = { ...context, cutoffMs: context.nowMs - 5 * dayMs, knowledge: { ...context.knowledge, openKeys } };
    assert.deepEqual(await collected(starts), ['00/gone-0/gone-key.json']);
  });

  it('keeps the last three versions of a run, every tenth, the first, pinned and served ones, and those with a keep file', async () => {
    const names = Array.from({ length: 16 }, (_, version) => `0123456789ab-v${version}`);
    for (const name of names) await file(`policy/checkpoints/model_a/weights/${name}/model.safetensors`, 2);
    await file('trainer/01a21024-04aa-7838-9df4-0123456789ab.json', 2, '{}');
    await file('policy/checkpoints/model_b/weights/aaaaaaaaaaaa-v1/model.safetensors', 2);
    await file('policy/checkpoints/model_a/weights/0123456789ab-v6/keep', 2);
    await file('policy/checkpoints/model_a/weights/of-another-client/model.safetensors', 2);
    const served = join(context.checkpoints, 'model_a/weights/0123456789ab-v7');
    await file('policy/published.json', 2, JSON.stringify({ path: served, label: 'v7' }));
    for (const name of names) await utimes(join(context.checkpoints, 'model_a/weights', name), 0, 0);
    const gone = [1, 2, 3, 5, 8, 9, 11, 12].map((version) => `model_a/weights/0123456789ab-v${version}`).sort();
    assert.deepEqual(await collected(checkpoints), gone);
    const left = await readdir(join(context.checkpoints, 'model_a/weights'));
    assert.equal(left.length, 16 - gone.length + 1);
    const other = await readdir(join(context.checkpoints, 'model_b/weights'));
    assert.equal(other.length, 1, 'expected the checkpoint of a run that this home does not know to stay');
  });

  it('keeps the checkpoints of a warm-up until there is a version', async () => {
    const saved = (name: string) => `model_a/weights/0123456789ab-${name}`;
    for (const name of ['w7', 'w20']) await file(`policy/checkpoints/${saved(name)}/w`, 2);
    await file('trainer/01a21024-04aa-7838-9df4-0123456789ab.json', 2, '{}');
    for (const name of ['w7', 'w20']) await utimes(join(context.checkpoints, saved(name)), 0, 0);
    assert.deepEqual(await collected(checkpoints), []);
    await file(`policy/checkpoints/${saved('v0')}/w`, 2);
    assert.deepEqual(await collected(checkpoints), [saved('w20'), saved('w7')]);
  });

  it('removes the checkpoints of a run that ended before the given age, but for those that are served', async () => {
    for (const version of [0, 1, 2]) await file(`policy/checkpoints/model_a/weights/0123456789ab-v${version}/w`, 100);
    await file(
      'policy/published.json',
      2,
      JSON.stringify({ path: join(context.checkpoints, 'model_a/weights/0123456789ab-v2') }),
    );
    await file('trainer/01a21024-04aa-7838-9df4-0123456789ab.json', 100, '{}');
    for (const version of [0, 1, 2]) {
      await utimes(join(context.checkpoints, `model_a/weights/0123456789ab-v${version}`), 0, 0);
    }
    context = {
      ...context,
      cutoffMs: Date.now() - 90 * dayMs,
      knowledge: { ...context.knowledge, openKeys: async () => new Set() },
    };
    const gone = [0, 1].map((version) => `model_a/weights/0123456789ab-v${version}`);
    assert.deepEqual(await collected(checkpoints), gone);
  });

  it("keeps or removes a trainer's journal together with the past steps of its run", async () => {
    const keys = ['01a21024-04aa-7838-9df4-00000000000a', '01a21024-04aa-7838-9df4-00000000000b'];
    for (const [index, key] of keys.entries()) {
      await file(`trainer/${key}/steps-1.json`, 100, '{}');
      await utimes(join(home, 'trainer', key), 0, 0);
      await file(`trainer/${key}.json`, index === 0 ? 10 : 100, '{}');
    }
    context = {
      ...context,
      cutoffMs: Date.now() - 90 * dayMs,
      knowledge: { ...context.knowledge, openKeys: async () => new Set() },
    };
    assert.deepEqual(await collected(trainerJournals), [keys[1], `${keys[1]}.json`]);
    assert.deepEqual(await readdir(join(home, 'trainer')), [keys[0], `${keys[0]}.json`]);
  });

  it('gives the unused space of a database back when no server has it open', async () => {
    await mkdir(dirname(context.paths.database), { recursive: true });
    const sqlite = new DatabaseSync(context.paths.database);
    sqlite.exec('CREATE TABLE rows (text TEXT); BEGIN');
    const insert = sqlite.prepare('INSERT INTO rows VALUES (?)');
    for (let row = 0; row < 3000; row += 1) insert.run('x'.repeat(10_000));
    sqlite.exec('COMMIT; DELETE FROM rows WHERE rowid > 10');
    sqlite.close();
    const before = (await stat(context.paths.database)).size;
    const lock = await tryLock(`${context.paths.database}.lock`);
    assert.ok('fd' in lock);
    const busy = await collect(home, [database], context, { dryRun: false, limitMs: 60_000 });
    assert.deepEqual(busy, [{ category: 'database', removed: 0, bytes: 0, skipped: null }]);
    await lock.release();
    assert.deepEqual(await collected(database), ['temporal.db']);
    assert.ok((await stat(context.paths.database)).size < before / 10);
  });

  it('skips checkpoints, and says why, when it cannot know which are pinned', async () => {
    for (const version of [1, 2, 3, 4, 5]) {
      await file(`policy/checkpoints/model_a/weights/0123456789ab-v${version}/model.safetensors`, 2);
      await utimes(join(context.checkpoints, `model_a/weights/0123456789ab-v${version}`), 0, 0);
    }
    const knowledge = createKnowledge(() => Promise.reject(new Error('the server is away')));
    const reports = await collect(home, [checkpoints], { ...context, knowledge }, { dryRun: false, limitMs: 60_000 });
    assert.deepEqual(reports, [{ category: 'checkpoints', removed: 0, bytes: 0, skipped: 'the server is away' }]);
    assert.equal((await readdir(join(context.checkpoints, 'model_a/weights'))).length, 5);
  });

  it('removes journals that were not written for a week, but not one that a gateway has open', async () => {
    await file('gateway/journals/old.1.sealed.json', 8);
    await file('gateway/journals/new.1.sealed.json', 6);
    const held = await file('gateway/journals/held.1.jsonl', 8);
    const lock = await tryLock(held);
    assert.ok('fd' in lock);
    await utimes(held, 0, 0);
    const reports = await collect(home, [journals], context, { dryRun: false, limitMs: 60_000 });
    assert.equal('holder' in reports ? null : reports[0]?.removed, 1);
    assert.deepEqual((await readdir(context.paths.journals)).sort(), ['held.1.jsonl', 'new.1.sealed.json']);
    await lock.release();
  });

  it('removes cached verdicts that were not used for a month', async () => {
    await file('verdicts/ab/old.json', 31);
    await file('verdicts/ab/new.json', 29);
    assert.deepEqual(await collected(cachedVerdicts), ['old.json']);
  });

  it('removes caches that were not used for a month, unless a process runs from them', async () => {
    await file('cache/bundles/0123456789abcdef0123456789abcdef.js', 31);
    await file('cache/bundles/other.js', 31);
    const program = await file('cache/node/24.0.0-linux-x64/bin/sleep', 31);
    await copyFile('/bin/sleep', program);
    await chmod(program, 0o755);
    await file('cache/node/22.0.0-linux-x64/bin/node', 31);
    for (const version of ['24.0.0', '22.0.0']) await utimes(join(home, `cache/node/${version}-linux-x64`), 0, 0);
    for (const age of [29, 31]) await file(`cache/compiled/v24.0.0-x64-abcdef01-0/${age}`, age);
    const child = spawn(program, ['60'], { stdio: 'ignore' });
    await once(child, 'spawn');
    const gone = [
      'bundles/0123456789abcdef0123456789abcdef.js',
      'compiled/v24.0.0-x64-abcdef01-0/31',
      'node/22.0.0-linux-x64',
    ];
    assert.deepEqual(await collected(caches), gone);
    child.kill('SIGKILL');
    const runtime = 'cache/runtime-0123456789abcdef';
    await file(`${runtime}/bin/node`, 1);
    assert.ok(caches.where(context).includes(join(home, runtime)), 'expected the size of runtimes to be measured');
  });

  it('removes demo homes on which no stack ran for two weeks, unless one runs', async () => {
    for (const name of ['old', 'busy', 'new']) {
      await file(`cache/demo/${name}/stack.json`, name === 'new' ? 13 : 15);
      if (name !== 'new') await utimes(join(home, 'cache/demo', name), 0, 0);
    }
    const lock = await tryLock(join(home, 'cache/demo/busy/up.lock'));
    assert.ok('fd' in lock);
    await utimes(join(home, 'cache/demo/busy/up.lock'), 0, 0);
    await utimes(join(home, 'cache/demo/busy'), 0, 0);
    assert.deepEqual(await collected(demoHomes), ['old']);
    await lock.release();
  });

  it('compresses a log beyond 64 MB, lets its process write on, and keeps three', async () => {
    const path = await file('logs/host.log', 0, `${'x'.repeat(1023)}\n`.repeat(65 * 1024));
    for (const number of [1, 2, 3]) await file(`logs/host.log.${number}.gz`, 0, String(number));
    const writer = await open(path, 'a');
    await writer.write('before\n');
    assert.deepEqual(await collected(logs), ['host.log']);
    await writer.write('after\n');
    await writer.close();
    const names = ['host.log', 'host.log.1.gz', 'host.log.2.gz', 'host.log.3.gz'];
    assert.deepEqual((await readdir(context.paths.logs)).sort(), names);
    assert.equal(await readFile(`${path}.3.gz`, 'utf8'), '2');
    assert.match(gunzipSync(await readFile(`${path}.1.gz`)).toString(), /x\nbefore\n$/);
    assert.equal(await readFile(path, 'utf8'), 'after\n');
  });

  it('lets one pass run at a time, and names the process of the other', async () => {
    const lock = await tryLock(join(home, 'retention.lock'));
    const reports = await collect(home, [logs], context, { dryRun: true, limitMs: 60_000 });
    assert.deepEqual(reports, { holder: { pid: process.pid } });
    assert.ok('fd' in lock);
    await lock.release();
  });
});
