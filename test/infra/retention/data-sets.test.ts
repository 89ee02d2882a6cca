import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { parseDataSetAddress } from '../../../infra/data-sets/address.ts';
import { createUses, useName } from '../../../infra/data-sets/uses.ts';
import { pathsBelow } from '../../../infra/paths.ts';
import { dataSets } from '../../../infra/retention/categories/data-sets.ts';
import { dayMs, type RetentionContext } from '../../../infra/retention/category.ts';
import { collect } from '../../../infra/retention/collect.ts';
import { createKnowledge } from '../../../infra/retention/knowledge.ts';
import { createDirectory } from '../../../infra/store/directory.ts';

const commit = 'a'.repeat(40);
const hubSet = 'swe-bench:hub:owner/name?repositories=https://host';
const urlSet = 'terminal-bench:https://host/tasks.tar.gz';

describe('retention of the downloads of data sets', () => {
  let home: string;
  let root: string;
  let context: RetentionContext;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-retention-'));
    root = join(home, 'cache/data-sets');
    const inputs = async (): Promise<readonly string[]> => [];
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
        scheduleInputs: inputs,
        openInputs: inputs,
      },
      signal: new AbortController().signal,
      note: () => undefined,
    };
    for (const path of [
      `hub/owner/name/${commit}/data.parquet`,
      'urls/abc/tasks.tar.gz',
      'repositories/def.git/HEAD',
    ]) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), 'content');
    }
    await mkdir(join(root, 'hub/owner/name/revisions'));
    await writeFile(join(root, 'hub/owner/name/revisions/main.json'), '{}');
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  const addressOf = (address: string) => parseDataSetAddress(address) ?? assert.fail();
  /** Records uses as a process does that starts now. */
  const use = async (address: string, ...paths: readonly string[]): Promise<void> => {
    const uses = createUses(root);
    await uses.record(addressOf(address));
    for (const path of paths) await uses.record(addressOf(address), join(root, path));
  };
  /** Makes everything look as if it had been used so many days ago. */
  async function age(days: number): Promise<void> {
    const time = (Date.now() - days * dayMs) / 1000;
    for (const path of await readdir(root, { recursive: true })) await utimes(join(root, path), time, time);
  }
  async function pass(dryRun = false): Promise<readonly string[]> {
    const names: string[] = [];
    const onEntry = (_: string, { name }: { readonly name: string }): void => void names.push(name);
    const reports = await collect(home, [dataSets], context, { dryRun, limitMs: 60_000, onEntry });
    assert.ok(!('holder' in reports));
    assert.equal(reports[0]?.skipped, null);
    return names.sort();
  }
  const hubPath = `hub/owner/name/${commit}`;
  const everything = [hubPath, 'repositories/def.git', 'urls/abc'];

  it('removes what was not used for 90 days, and keeps the commit of a branch', async () => {
    await use(hubSet, `${hubPath}/data.parquet`, 'repositories/def.git');
    await use(urlSet, 'urls/abc/tasks.tar.gz');
    await age(91);
    await use(urlSet);
    const gone = [hubPath, 'repositories/def.git', `uses/${useName(addressOf(hubSet))}`];
    assert.deepEqual(await pass(true), gone);
    assert.deepEqual(await pass(), gone);
    assert.deepEqual(await pass(), []);
    assert.deepEqual(await readdir(join(root, 'hub/owner/name')), ['revisions']);
    assert.deepEqual(await readdir(join(root, 'urls/abc')), ['tasks.tar.gz']);
  });

  it('keeps what a schedule or an open workflow names, whatever else is in their inputs', async () => {
    await use(hubSet, `${hubPath}/data.parquet`, 'repositories/def.git');
    await use(urlSet, 'urls/abc/tasks.tar.gz');
    await age(91);
    const knowledge = {
      ...context.knowledge,
      scheduleInputs: async () => [JSON.stringify([{ tasks: `${hubSet}#one-task`, note: 'a "quoted: text"' }])],
      openInputs: async () => [JSON.stringify({ request: { tasks: urlSet } })],
    };
    context = { ...context, knowledge };
    assert.deepEqual(await pass(), []);
  });

  it('keeps downloads from before uses were recorded until 90 days have passed since', async () => {
    await age(91);
    assert.deepEqual(await pass(), [], 'expected all to stay while no use is recorded');
    await use('swe-bench:hub:owner/other', 'urls/other/file');
    assert.deepEqual(await pass(), [], 'expected all to stay when records have just begun');
    await age(91);
    assert.deepEqual(await pass(), [...everything, `uses/${useName(addressOf('swe-bench:hub:owner/other'))}`]);
  });

  it('removes nothing while the server does not say what is needed', async () => {
    await use(hubSet, `${hubPath}/data.parquet`);
    await age(91);
    context = { ...context, knowledge: createKnowledge(() => Promise.reject(new Error('the server is away'))) };
    const reports = await collect(home, [dataSets], context, { dryRun: false, limitMs: 60_000 });
    assert.deepEqual(reports, [{ category: 'data sets', removed: 0, bytes: 0, skipped: 'the server is away' }]);
  });
});
