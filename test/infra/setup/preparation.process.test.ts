import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ensureDependencies, isInstalled } from '../../../infra/setup/dependencies.mjs';
import { isCurrentNode } from '../../../infra/setup/node-runtime.mjs';
import { repositoryRoot } from '../../helpers/sources.ts';

const run = promisify(execFile);

it('accepts Node 22.19 and newer', () => {
  assert.deepEqual(['18.19.0', '20.20.2', '22.18.0', '22.19.0', '24.0.0'].map(isCurrentNode), [
    false,
    false,
    false,
    true,
    true,
  ]);
});

describe('the npm packages', () => {
  let root = '';
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-packages-'));
    await mkdir(join(root, 'node_modules'));
  });
  after(() => rm(root, { recursive: true, force: true }));

  const wanted = {
    '': { name: 'temper' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b-darwin': { version: '1.0.0', optional: true },
  };
  const writeLock = (path: string, packages: object): Promise<void> =>
    writeFile(join(root, path), JSON.stringify({ packages }));

  it('are installed if npm recorded each in its version, except those for other platforms', async () => {
    await writeLock('package-lock.json', wanted);
    assert.equal(isInstalled(root), false);
    await writeLock('node_modules/.package-lock.json', { 'node_modules/a': { version: '1.0.0' } });
    assert.equal(isInstalled(root), true);
    await ensureDependencies(root); // would fail: there is no such package
    await writeLock('node_modules/.package-lock.json', { 'node_modules/a': { version: '0.9.0' } });
    assert.equal(isInstalled(root), false);
    await writeLock('node_modules/.package-lock.json', {});
    assert.equal(isInstalled(root), false);
  });

  it('cause an error that says what to do if they can not be fetched', async () => {
    const dependencies = { a: '1.0.0' };
    await writeFile(join(root, 'package.json'), JSON.stringify({ name: 'temper', dependencies }));
    const packages = { '': { dependencies }, 'node_modules/a': { version: '1.0.0' } };
    await writeFile(join(root, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }));
    const offline = { npm_config_registry: 'http://127.0.0.1:1/', npm_config_fetch_retries: '0' };
    Object.assign(process.env, offline);
    try {
      await assert.rejects(ensureDependencies(root), /`npm ci` could not .*see above.*run the same command again/);
    } finally {
      for (const name of Object.keys(offline)) delete process.env[name];
    }
  });
});

describe('the linter', () => {
  let root = '';
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-lint-'));
    await cp(join(repositoryRoot, 'biome.json'), join(root, 'biome.json'));
    await run('git', ['init', '-q', root]);
    await writeFile(join(root, '.gitignore'), '');
  });
  after(() => rm(root, { recursive: true, force: true }));

  it('finds an unawaited promise, even of an imported function, and a function that is too long', async () => {
    await writeFile(join(root, 'fetch.ts'), 'export async function fetchIt(): Promise<number> {\n  return 1;\n}\n');
    await writeFile(join(root, 'use.ts'), "import { fetchIt } from './fetch.ts';\n\nfetchIt();\n");
    await writeFile(join(root, 'long.ts'), `export function long(): void {\n${'  console.log(1);\n'.repeat(61)}}\n`);
    const error: unknown = await run(join(repositoryRoot, 'node_modules/.bin/biome'), ['check', root], {
      cwd: root,
    }).catch((reason) => reason);
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    assert.match(output, /use\.ts:3:1 lint\/nursery\/noFloatingPromises/);
    assert.match(output, /long\.ts.*noExcessiveLinesPerFunction/);
  });
});
