import assert from 'node:assert/strict';
import { watch } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { it } from 'node:test';
import { createPackages } from '../../../infra/agents/packages.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { readSource, sourcesBelow } from '../../helpers/sources.ts';
import { until } from '../../helpers/until.ts';

interface Lockfile {
  readonly packages: Readonly<Record<string, { version?: string; integrity?: string; resolved?: string }>>;
}

const packaged = sourcesBelow('infra/agents')
  .map((path) => /^infra\/agents\/([\w-]+)\.ts$/.exec(path)?.[1] ?? '')
  .filter((name) => readSource(`infra/agents/${name || 'nop'}.ts`).includes(`packages.prepare('${name}')`));

it('every npm agent names one exact version, and its lockfile pins every package by digest without a registry', () => {
  assert.ok(packaged.includes('pi'));
  for (const name of packaged) {
    const { dependencies } = JSON.parse(readSource(`infra/agents/${name}/package.json`));
    for (const version of Object.values(dependencies)) assert.match(String(version), /^\d+\.\d+\.\d+$/, name);
    const { packages }: Lockfile = JSON.parse(readSource(`infra/agents/${name}/package-lock.json`));
    for (const [path, { integrity, resolved }] of Object.entries(packages)) {
      if (path === '') continue;
      assert.match(integrity ?? '', /^sha512-/, `${name}: ${path}`);
      assert.equal(resolved, undefined, `${name}: ${path}`);
    }
  }
});

/** The name of the directory of pi, which the test of a failed installation sees. */
let directoryOfPi = '';

it('a failed installation is an infra failure with the last output of npm, and leaves nothing behind', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'temper-packages-'));
  const offline = {
    npm_config_registry: 'http://127.0.0.1:9',
    npm_config_cache: join(cacheDir, 'npm'),
    npm_config_fetch_retries: '0',
  };
  const before = { ...process.env };
  Object.assign(process.env, offline);
  try {
    const packages = createPackages({ cacheDir });
    const failed = (error: unknown) =>
      error instanceof TemperFailure &&
      error.type === 'AgentInstallFailed' &&
      /install the agent pi[\s\S]*ECONNREFUSED[\s\S]*npm config get registry/.test(error.message);
    const agents = join(cacheDir, 'agents');
    await mkdir(agents);
    const drafts = new Set<string>();
    // It also learns of a directory that is gone again.
    const watcher = watch(agents, (_, name) => void (name?.endsWith('.new') && drafts.add(name)));
    await assert.rejects(Promise.all([packages.prepare('pi'), packages.prepare('pi')]), failed);
    const [draft] = await until(() => drafts.size === 1 && [...drafts]);
    watcher.close();
    directoryOfPi = draft?.slice(0, -'.new'.length) ?? '';
    assert.deepEqual(await readdir(agents), []);
    await assert.rejects(packages.prepare('pi'), failed);
  } finally {
    for (const name of Object.keys(offline)) delete process.env[name];
    Object.assign(process.env, before);
    await rm(cacheDir, { recursive: true, force: true });
  }
});

it('concurrent processes install an agent once, even after an interrupted installation', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'temper-packages-'));
  try {
    const left = join(cacheDir, 'agents', `${directoryOfPi}.new/node_modules/half-done`);
    await mkdir(left, { recursive: true });
    const [first, second] = [createPackages({ cacheDir }), createPackages({ cacheDir })];
    const [mount, same] = await Promise.all([first.prepare('pi'), second.prepare('pi')]);
    assert.deepEqual([mount, basename(mount.source)], [same, directoryOfPi]);
    await access(join(mount.source, 'node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js'));
    assert.ok(!(await readdir(join(mount.source, 'node_modules'))).includes('half-done'));
    assert.equal((await readdir(join(cacheDir, 'agents'))).length, 1);
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});
